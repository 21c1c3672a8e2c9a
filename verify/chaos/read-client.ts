import { handledBy } from "./handlers.ts";
import type { ClientRecord, Moment } from "./history.ts";
import type { ProcessStory, RunStory, Story } from "./stories.ts";

/** @returns what reads the records of the client process with that name */
export function readClient(run: RunStory, name: string): (record: ClientRecord) => void {
  const process = newProcess(name);
  run.processes.set(name, process);
  const stories = new Map<number, Story>();
  const change = (ask: number, changes: Partial<Story>): void => {
    const story = stories.get(ask);
    if (story) {
      Object.assign(story, changes);
    }
  };
  const prolong = (ask: number, until: Moment): void => {
    change(ask, { until: Math.max(stories.get(ask)?.until ?? 0, until) });
  };
  return handledBy<ClientRecord>({
    opened: ({ at, handover }) => {
      process.openedAt = at;
      process.handover = handover;
    },
    asked: (record) => {
      const story = newStory(name, record);
      stories.set(record.ask, story);
      run.stories.push(story);
    },
    granted: ({ at, ask, token, until }) => {
      change(ask, { grantedAt: at, token: BigInt(token), until });
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
    breaking: ({ at, key, token }) => {
      run.breaks.push({ at, key, token: BigInt(token) });
    },
    broke: () => undefined,
    vote: ({ at, rounds }) => {
      const moments = run.votes.get(rounds) ?? [];
      moments.push(at);
      run.votes.set(rounds, moments);
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

function newStory(process: string, asked: Extract<ClientRecord, { e: "asked" }>): Story {
  const { ask, key, kind, waitMs, attempt, at } = asked;
  return {
    process,
    ask,
    key,
    kind,
    waitMs,
    attempt,
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
  };
}
