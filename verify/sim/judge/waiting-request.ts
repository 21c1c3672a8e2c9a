import type { Arrivals } from "./arrivals.ts";
import { hasPermits, isShared, keysOf, weightOf } from "../plan/lock-mode.ts";
import type { Use } from "../plan/schedule.ts";

/** How much later than it wanted a caller may be answered, ms: it asks who holds the lock, and stops asking. */
const waitTimeoutGraceMs = 300;
/** How long a try may take, ms: its command budget. */
const tryBudgetMs = 500;
/** Who asks for several keys gives back what it has before it answers, ms: the budget of a command, once more. */
const cleanUpMs = 1_500;

/** One caller that asks for a key. */
export interface WaitingRequest {
  readonly client: number;
  readonly keys: readonly string[];
  /** How much of the key's room it wants. */
  readonly weight: number;
  /** It shares the key with others, each by a grant of its own. */
  readonly isShared: boolean;
  readonly ttlMs: number;
  readonly since: number;
  /** Its place in the queue may be that of so early an arrival: see `QueueOrder`. */
  readonly arrivedFrom: number;
  /** Or of so late a one. */
  readonly arrivedTo: number;
  /** A fault since then may have cost it its place: since the first of its client's own line that stands before it asked. */
  readonly judgedSince: number;
  /** Of two that ask at the same moment the smaller one was first. */
  readonly serial: number;
  /** It stands in its client's own line, as an attempt and a request for several keys do too, which may come there again. */
  readonly isInLocalQueue: boolean;
  /** It stands there once, so nobody overtakes it. */
  readonly usesLocalQueue: boolean;
  /** Of a semaphore: it may wait in memory, where others of its client with as many permits came before it. */
  readonly mayWaitInMemory: boolean;
  /** Since when it has been the first of those; Infinity: it is not. */
  headSince: number;
  /** It has a place of its own in the queue by now: it waits, has no name, and its client is known to the servers. */
  isQueued: boolean;
  /** It once wanted more than there was, or another has what it wants: until it asks again it is in no queue. */
  isDequeued: boolean;
  /** Until when it wants to wait: then it leaves the queue, and asks who has the lock before it answers. */
  readonly until: number;
  wasGranted: boolean;
  isSettled: boolean;
}

interface RequestStart {
  readonly now: number;
  readonly serial: number;
  readonly waits: boolean;
  readonly usesLocalQueue: boolean;
}

/** @param waiting the requests that wait for the key of the use */
export function createRequest(
  use: Use,
  { now, serial, waits, usesLocalQueue }: RequestStart,
  arrivals: Arrivals,
  waiting: ReadonlySet<WaitingRequest>,
): WaitingRequest {
  const { client, waitMs, attemptId, ttlMs, mode } = use;
  const queued = [...waiting].filter((other) => other.client === client && other.isInLocalQueue);
  const isBehindUnsynced = usesLocalQueue && queued.some(({ isQueued }) => !isQueued);
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
    isQueued: isPlain && arrivals.isRegistered(client) && !isBehindUnsynced,
    isDequeued: false,
    wasGranted: false,
    isSettled: false,
  };
}

export function replyDueBy({ until, keys }: WaitingRequest, now: number, waits: boolean): number {
  const mostMs = waits ? until - now + waitTimeoutGraceMs : tryBudgetMs;
  return now + mostMs + extraKeysMs(keys.length);
}

/** Of several keys each is tried once behind the deadline, and what was had of them is given back. */
function extraKeysMs(keys: number): number {
  return keys > 1 ? cleanUpMs + keys * tryBudgetMs : 0;
}

/** In which line of its client somebody stands. */
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

/** Who wants several stands in no queue but that of the first it has not got; who is in a session, behind the others of it. */
function isSentDirectly(use: Use): boolean {
  const { mode } = use;
  return keysOf(use).length === 1 && !(mode?.kind === "nested" && mode.session !== undefined);
}
