import type { SeededRandom } from "../plan/chance.ts";
import type { LeaseRequest } from "../judge/history.ts";
import type { Lock, LockKind } from "./lock.ts";
import type { ClientState } from "./client-state.ts";
import type { Keys } from "../plan/plan.ts";

/** The use of a lock that a caller has planned. */
export interface LockTask {
  readonly lock: Lock;
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly renew: boolean;
  readonly holdMs: number;
  /** Whether a writer becomes a reader. */
  readonly downgrades: boolean;
}

export function drawTask({ random, keys, index, shortestTtlMs, maxTtlMs }: ClientState): LockTask {
  const lock = drawLock(random, keys, index);
  const ttlMs = random.integer(shortestTtlMs, maxTtlMs);
  return {
    lock,
    ttlMs,
    waitMs: random.pick([random.integer(50, 500), random.integer(500, 2_000), 2_000]),
    renew: random.happens(0.8),
    holdMs: drawHoldMs(random, lock.lockKind, ttlMs),
    downgrades: lock.lockKind === "write" && random.happens(0.4),
  };
}

/** The record of a task's request. */
export function requestOf({
  lockKind,
  key,
  keys,
  permits,
}: Lock): Pick<LeaseRequest, "key" | "lockKind" | "keys" | "permits"> {
  return {
    key,
    ...(lockKind === "mutex" ? {} : { lockKind }),
    ...(keys === undefined ? {} : { keys }),
    ...(permits === undefined ? {} : { permits }),
  };
}

/** Every lock of a run, with its full capacity. In a quiet period acquiring all of them shows that none is stuck. */
export function fullLocks(keys: Keys): readonly Lock[] {
  const locksOf = (lockKind: LockKind, list: readonly string[]): Lock[] =>
    list.map((key) => ({ lockKind, key }));
  return [
    ...locksOf("mutex", [keys.hot, ...keys.lukewarm, ...keys.own]),
    ...locksOf("write", keys.readWrite),
    ...locksOf("read", keys.readWrite),
    ...keys.semaphores.map(({ key, limit }): Lock => ({ lockKind: "semaphore", key, limit, permits: limit })),
    multiLock(keys.sets),
    ...locksOf("reentrant", keys.reentrant),
    ...locksOf("election", keys.elections),
  ];
}

function drawLock(random: SeededRandom, keys: Keys, index: number): Lock {
  const percent = random.between(0, 100);
  if (percent < 60) return drawMutex(random, keys, index);
  if (percent < 76 && keys.readWrite.length > 0) {
    return { lockKind: random.happens(0.7) ? "read" : "write", key: random.pick(keys.readWrite) };
  }
  if (percent < 84 && keys.semaphores.length > 0) return drawPermits(random, keys);
  if (percent < 94) {
    // Sometimes a task uses one key of a set as a mutex, among tasks that use several.
    return random.happens(0.2)
      ? { lockKind: "mutex", key: random.pick(keys.sets) }
      : multiLock(random.shuffled(keys.sets).slice(0, random.integer(2, keys.sets.length)));
  }
  return percent < 98
    ? { lockKind: "reentrant", key: random.pick(keys.reentrant) }
    : { lockKind: "election", key: random.pick(keys.elections) };
}

function drawMutex(random: SeededRandom, { hot, lukewarm, own }: Keys, index: number): Lock {
  const key = random.pick([hot, hot, hot, random.pick(lukewarm), own[index] as string]);
  return { lockKind: "mutex", key };
}

function drawPermits(random: SeededRandom, { semaphores }: Keys): Lock {
  const { key, limit } = random.pick(semaphores);
  return { lockKind: "semaphore", key, limit, permits: random.pick([1, 1, 1, 2, 3, limit]) };
}

function multiLock(keys: readonly string[]): Lock {
  return { lockKind: "all", key: keys[0] as string, keys };
}

/** Mostly short, and sometimes longer than the TTL. Locks that several may hold are held longer, so that holders overlap. */
function drawHoldMs(random: SeededRandom, as: LockKind, ttlMs: number): number {
  const percent = random.between(0, 100);
  if (as === "election") return random.between(0, 1_500);
  if (percent < 85) return random.between(0, as === "read" || as === "semaphore" ? 150 : 5);
  return percent < 99 ? random.between(5, 80) : random.between(80, ttlMs * 1.2);
}
