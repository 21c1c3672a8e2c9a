import type { Arrivals, ArrivalWindow } from "./arrivals.ts";
import { hasPermits, isShared, keysOf, weightOf } from "../plan/lock-mode.ts";
import type { Use } from "../plan/schedule.ts";

/** How long after its deadline a caller gets its reply, ms. The request first reads the holders of the lock, and removes its queue entry. */
const waitTimeoutGraceMs = 300;
/** How long a try may take, ms: the time budget of one command. */
const tryBudgetMs = 500;
/** How long a request for several keys may release the keys that it got before it fails, ms. */
const cleanUpMs = 1_500;

/** One request of a caller for a lock. */
export interface WaitingRequest extends ArrivalWindow {
  readonly client: number;
  readonly keys: readonly string[];
  /** How much of the key's capacity the request needs. */
  readonly weight: number;
  /** The holder shares the key with other holders, each with a grant of its own. */
  readonly isShared: boolean;
  readonly ttlMs: number;
  readonly since: number;
  /** A fault since then may have removed its queue entry: the start of the first request before it in the local queue. */
  readonly judgedSince: number;
  /** Of two requests that start at the same time, the smaller serial was first. */
  readonly serial: number;
  /** The request waits in the local queue of its client. Attempts and requests for several keys may enter that queue more than once. */
  readonly isInLocalQueue: boolean;
  /** The request enters the local queue once, so that no later request overtakes it. */
  readonly usesLocalQueue: boolean;
  /** A request for permits may wait in memory after requests of its client for the same number of permits. */
  readonly mayWaitInMemory: boolean;
  /** Since when the request has been the first of these; Infinity: it is not the first. */
  headSince: number;
  /** When the request was sent to the servers after a wait in memory; -Infinity: at its start. */
  sentSince: number;
  /** The request has its own queue entry: it waits, it has no `attemptId`, and the servers know its client. */
  isQueued: boolean;
  /** The request exceeded the limit at some time, so it has no queue entry until its next poll. */
  isDequeued: boolean;
  wasGranted: boolean;
  /** Its process paused in the turn that reported the grant. */
  hadPause: boolean;
  isSettled: boolean;
}

interface RequestStart {
  readonly now: number;
  readonly serial: number;
  readonly waits: boolean;
  readonly usesLocalQueue: boolean;
}

/** @param waiting the requests that wait for the key of the use, in the order of their start */
export function createRequest(
  use: Use,
  { now, serial, waits, usesLocalQueue }: RequestStart,
  arrivals: Arrivals,
  waiting: ReadonlySet<WaitingRequest>,
): WaitingRequest {
  const { client, waitMs, attemptId, ttlMs, mode } = use;
  const queued = [...waiting].filter((other) => other.client === client && other.isInLocalQueue);
  const isAfterUnqueued = usesLocalQueue && queued.some(({ isQueued }) => !isQueued);
  const isPlain = waits && attemptId === undefined && isSentDirectly(use);
  return {
    client,
    keys: keysOf(use),
    weight: weightOf(mode),
    isShared: isShared(mode),
    ttlMs,
    since: now,
    judgedSince: usesLocalQueue ? Math.min(now, ...queued.map(({ judgedSince }) => judgedSince)) : now,
    ...arrivals.windowOf(client, waitMs ?? Infinity),
    serial,
    ...localQueueState(mode, { usesLocalQueue, waits, isPlain }),
    sentSince: -Infinity,
    isQueued: isPlain && arrivals.isRegistered(client) && !isAfterUnqueued,
    isDequeued: false,
    wasGranted: false,
    hadPause: false,
    isSettled: false,
  };
}

/** When the reply of a request is due at the latest. */
export function replyDueBy({ until, keys }: WaitingRequest, now: number, waits: boolean): number {
  const mostMs = waits ? until - now + waitTimeoutGraceMs : tryBudgetMs;
  return now + mostMs + extraKeysMs(keys.length);
}

/** After the deadline each of several keys is tried once, and the acquired keys are released. */
function extraKeysMs(keys: number): number {
  return keys > 1 ? cleanUpMs + keys * tryBudgetMs : 0;
}

/** How the request uses the local queue of its client. */
function localQueueState(
  mode: Use["mode"],
  { usesLocalQueue, waits, isPlain }: Readonly<Record<"usesLocalQueue" | "waits" | "isPlain", boolean>>,
): Pick<WaitingRequest, "isInLocalQueue" | "usesLocalQueue" | "mayWaitInMemory" | "headSince"> {
  return {
    isInLocalQueue: usesLocalQueue && waits && !isShared(mode),
    usesLocalQueue: usesLocalQueue && isPlain && !isShared(mode),
    mayWaitInMemory: usesLocalQueue && waits && hasPermits(mode),
    headSince: Infinity,
  };
}

/**
 * Whether a request queues for its one key at once. A request for several keys waits only in the queue of the first key that it lacks.
 * A request in a session waits after the other requests of its session.
 */
function isSentDirectly(use: Use): boolean {
  const { mode } = use;
  return keysOf(use).length === 1 && !(mode?.kind === "nested" && mode.session !== undefined);
}
