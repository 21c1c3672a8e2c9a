import { handledBy } from "./record-handlers.ts";
import type { ClientRecord, Instant } from "./history.ts";
import type { LatchCall, ProcessHistory, RunHistory, AttemptHistory } from "./attempts.ts";

/** @returns the reader of the records of the client process with that name */
export function readClient(run: RunHistory, name: string): (record: ClientRecord) => void {
  const process = newProcessHistory(name);
  run.processes.set(name, process);
  const latchCalls = new Map<number, LatchCall>();
  const attempts = new Map<number, readonly AttemptHistory[]>();
  const update = (requestId: number, changes: Partial<AttemptHistory>): void => {
    for (const attempt of attempts.get(requestId) ?? []) {
      Object.assign(attempt, changes);
    }
  };
  const extendValidity = (requestId: number, until: Instant): void => {
    update(requestId, { validUntil: Math.max(attempts.get(requestId)?.[0]?.validUntil ?? 0, until) });
  };
  return handledBy<ClientRecord>({
    opened: ({ at, handover }) => {
      process.openedAt = at;
      process.handover = handover;
    },
    requested: (record) => {
      const { key, keys = [key] } = record;
      const keyAttempts = keys.map((each, part) => newAttempt(name, record, each, part));
      attempts.set(record.requestId, keyAttempts);
      run.attempts.push(...keyAttempts);
    },
    granted: ({ at, requestId, token, tokens, validUntil }) => {
      for (const attempt of attempts.get(requestId) ?? []) {
        // 0: the lease has no token for this key
        const own = BigInt(tokens === undefined ? token : (tokens[attempt.key] ?? 0));
        Object.assign(attempt, { grantedAt: at, token: own, validUntil });
      }
    },
    refused: ({ at, requestId, code }) => {
      update(requestId, { refusedAt: at, refusal: code });
      attempts.delete(requestId);
    },
    valid: ({ requestId, validUntil }) => {
      extendValidity(requestId, validUntil);
    },
    used: () => undefined,
    lost: ({ at, requestId, reason }) => {
      update(requestId, { lostAt: at, lossReason: reason });
    },
    unreported: ({ at, requestId }) => {
      update(requestId, { unreportedAt: at });
    },
    releasing: ({ at, requestId, validUntil }) => {
      update(requestId, { releasingAt: at });
      extendValidity(requestId, validUntil);
    },
    released: ({ at, requestId, answer }) => {
      update(requestId, { releasedAt: at, releaseAnswer: answer });
      attempts.delete(requestId);
    },
    transferred: ({ at, requestId }) => {
      update(requestId, { transferredAt: at });
    },
    downgraded: ({ at, requestId }) => {
      update(requestId, { downgradedAt: at });
    },
    latch: (record) => {
      const call: LatchCall = { ...record, process: name, requestedAt: record.at };
      latchCalls.set(record.call, call);
      run.latchCalls.push(call);
    },
    "latch-reply": ({ at, call, remaining }) => {
      Object.assign(latchCalls.get(call) ?? {}, { settledAt: at, remaining });
      latchCalls.delete(call);
    },
    "latch-refused": ({ at, call, code }) => {
      Object.assign(latchCalls.get(call) ?? {}, { settledAt: at, code });
      latchCalls.delete(call);
    },
    breaking: ({ at, key, token }) => {
      run.breaks.push({ at, process: name, key, token: BigInt(token), confirmedAt: undefined });
    },
    "break-result": ({ at, key, answer }) => {
      const last = run.breaks.findLast((other) => other.process === name && other.key === key);
      if (last && answer === "true") {
        last.confirmedAt = at;
      }
    },
    vote: ({ at, key, token, rounds, votes }) => {
      run.majorityGrants.push({ process: name, at, key, votes, token: BigInt(token), rounds });
    },
    extended: ({ at, key, votes }) => {
      run.extensions.push({ process: name, at, key, votes });
    },
    stalled: ({ at, since }) => {
      process.stalls.push({ from: since, to: at });
    },
    "unhandled-error": ({ at, error }) => {
      process.unhandledErrors.push({ at, error });
    },
    memory: ({ at, bytes }) => {
      process.memory.push({ at, bytes });
    },
    quiescent: () => undefined,
    closed: ({ at }) => {
      process.closedAt = at;
    },
  });
}

function newProcessHistory(name: string): ProcessHistory {
  return {
    name,
    openedAt: 0,
    handover: true,
    killedAt: undefined,
    crashed: undefined,
    closedAt: undefined,
    stalls: [],
    memory: [],
    unhandledErrors: [],
  };
}

function newAttempt(
  process: string,
  request: Extract<ClientRecord, { e: "requested" }>,
  key: string,
  keyIndex: number,
): AttemptHistory {
  const { requestId, kind, waitMs, attemptId, at, lockKind = "mutex", permits = 1, reentrantHold } = request;
  return {
    process,
    requestId,
    key,
    keyIndex,
    lockKind,
    permits,
    reentrantHold,
    kind,
    waitMs,
    attemptId: attemptId === undefined ? undefined : `${process} ${attemptId}`, // attempts of different processes are separate
    requestedAt: at,
    grantedAt: undefined,
    token: 0n,
    validUntil: 0,
    refusedAt: undefined,
    refusal: undefined,
    lostAt: undefined,
    lossReason: undefined,
    unreportedAt: undefined,
    releasingAt: undefined,
    releasedAt: undefined,
    releaseAnswer: undefined,
    transferredAt: undefined,
    downgradedAt: undefined,
  };
}
