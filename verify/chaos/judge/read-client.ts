import { handledBy } from "./record-handlers.ts";
import type { ClientRecord, Moment } from "./history.ts";
import type { LatchCall, ProcessStory, RunStory, Story } from "./attempts.ts";

/** @returns what reads the records of the client process with that name */
export function readClient(run: RunStory, name: string): (record: ClientRecord) => void {
  const process = newProcess(name);
  run.processes.set(name, process);
  const latchCalls = new Map<number, LatchCall>();
  const stories = new Map<number, readonly Story[]>();
  const change = (ask: number, changes: Partial<Story>): void => {
    for (const story of stories.get(ask) ?? []) {
      Object.assign(story, changes);
    }
  };
  const prolong = (ask: number, until: Moment): void => {
    change(ask, { until: Math.max(stories.get(ask)?.[0]?.until ?? 0, until) });
  };
  return handledBy<ClientRecord>({
    opened: ({ at, handover }) => {
      process.openedAt = at;
      process.handover = handover;
    },
    asked: (record) => {
      const { key, keys = [key] } = record;
      const parts = keys.map((each, part) => newStory(name, record, each, part));
      stories.set(record.ask, parts);
      run.stories.push(...parts);
    },
    granted: ({ at, ask, token, tokens, until }) => {
      for (const story of stories.get(ask) ?? []) {
        // 0: it has none for this key
        const own = BigInt(tokens === undefined ? token : (tokens[story.key] ?? 0));
        Object.assign(story, { grantedAt: at, token: own, until });
      }
    },
    refused: ({ at, ask, code }) => {
      change(ask, { refusedAt: at, refusal: code });
      stories.delete(ask);
    },
    valid: ({ ask, until }) => {
      prolong(ask, until);
    },
    used: () => undefined,
    lost: ({ at, ask, reason }) => {
      change(ask, { lostAt: at, lossReason: reason });
    },
    untold: ({ at, ask }) => {
      change(ask, { untoldAt: at });
    },
    releasing: ({ at, ask, until }) => {
      change(ask, { releasingAt: at });
      prolong(ask, until);
    },
    released: ({ at, ask, answer }) => {
      change(ask, { releasedAt: at, releaseAnswer: answer });
      stories.delete(ask);
    },
    transferred: ({ at, ask }) => {
      change(ask, { transferredAt: at });
    },
    downgraded: ({ at, ask }) => {
      change(ask, { downgradedAt: at });
    },
    latch: (record) => {
      const call: LatchCall = { ...record, process: name, askedAt: record.at };
      latchCalls.set(record.call, call);
      run.latchCalls.push(call);
    },
    latched: ({ at, call, left }) => {
      Object.assign(latchCalls.get(call) ?? {}, { settledAt: at, left });
      latchCalls.delete(call);
    },
    unlatched: ({ at, call, code }) => {
      Object.assign(latchCalls.get(call) ?? {}, { settledAt: at, code });
      latchCalls.delete(call);
    },
    breaking: ({ at, key, token }) => {
      run.breaks.push({ at, process: name, key, token: BigInt(token), doneAt: undefined });
    },
    broke: ({ at, key, answer }) => {
      const last = run.breaks.findLast((other) => other.process === name && other.key === key);
      if (last && answer === "true") {
        last.doneAt = at;
      }
    },
    vote: ({ at, key, token, rounds, votes }) => {
      run.elections.push({ process: name, at, key, votes, token: BigInt(token), rounds });
    },
    extended: ({ at, key, votes }) => {
      run.extensions.push({ process: name, at, key, votes });
    },
    stalled: ({ at, since }) => {
      process.stalls.push({ from: since, to: at });
    },
    unheard: ({ at, error }) => {
      process.unheard.push({ at, error });
    },
    memory: ({ at, bytes }) => {
      process.memory.push({ at, bytes });
    },
    quiet: () => undefined,
    closed: ({ at }) => {
      process.closedAt = at;
    },
  });
}

function newProcess(name: string): ProcessStory {
  return {
    name,
    openedAt: 0,
    handover: true,
    killedAt: undefined,
    crashed: undefined,
    closedAt: undefined,
    stalls: [],
    memory: [],
    unheard: [],
  };
}

function newStory(
  process: string,
  asked: Extract<ClientRecord, { e: "asked" }>,
  key: string,
  part: number,
): Story {
  const { ask, kind, waitMs, attempt, at, as = "mutex", permits = 1, nest } = asked;
  return {
    process,
    ask,
    key,
    part,
    as,
    permits,
    nest,
    kind,
    waitMs,
    attempt: attempt === undefined ? undefined : `${process} ${attempt}`, // each process has attempts of its own
    askedAt: at,
    grantedAt: undefined,
    token: 0n,
    until: 0,
    refusedAt: undefined,
    refusal: undefined,
    lostAt: undefined,
    lossReason: undefined,
    untoldAt: undefined,
    releasingAt: undefined,
    releasedAt: undefined,
    releaseAnswer: undefined,
    transferredAt: undefined,
    downgradedAt: undefined,
  };
}
