import type { Chance } from "../plan/chance.ts";
import type { Asked } from "../judge/history.ts";
import type { Lock, LockName } from "./lock.ts";
import type { Office } from "./client-state.ts";
import type { Keys } from "../plan/plan.ts";

/** What a caller is about to do with a lock. */
export interface Errand {
  readonly lock: Lock;
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly renew: boolean;
  readonly holdMs: number;
  /** Of a writer: whether it becomes a reader. */
  readonly downgrades: boolean;
}

export function drawErrand({ chance, keys, index, shortestTtlMs, maxTtlMs }: Office): Errand {
  const lock = drawLock(chance, keys, index);
  const ttlMs = chance.whole(shortestTtlMs, maxTtlMs);
  return {
    lock,
    ttlMs,
    waitMs: chance.pick([chance.whole(50, 500), chance.whole(500, 2_000), 2_000]),
    renew: chance.happens(0.8),
    holdMs: holdMs(chance, lock.as, ttlMs),
    downgrades: lock.as === "write" && chance.happens(0.4),
  };
}

/** How an errand is told of in the history. */
export function aboutOf({ as, key, keys, permits }: Lock): Pick<Asked, "key" | "as" | "keys" | "permits"> {
  return {
    key,
    ...(as === "mutex" ? {} : { as }),
    ...(keys === undefined ? {} : { keys }),
    ...(permits === undefined ? {} : { permits }),
  };
}

/** Every lock of a run, so that all of it is taken: what shows in peace that nothing is stuck. */
export function wholeLocks(keys: Keys): readonly Lock[] {
  const one = (as: LockName, list: readonly string[]): Lock[] => list.map((key) => ({ as, key }));
  return [
    ...one("mutex", [keys.hot, ...keys.lukewarm, ...keys.own]),
    ...one("write", keys.readWrite),
    ...one("read", keys.readWrite),
    ...keys.semaphores.map(({ key, limit }): Lock => ({ as: "semaphore", key, limit, permits: limit })),
    allOf(keys.sets),
    ...one("reentrant", keys.reentrant),
    ...one("election", keys.elections),
  ];
}

function drawLock(chance: Chance, keys: Keys, index: number): Lock {
  const lot = chance.between(0, 100);
  if (lot < 60) return mutex(chance, keys, index);
  if (lot < 76) {
    return { as: chance.happens(0.7) ? "read" : "write", key: chance.pick(keys.readWrite) };
  }
  if (lot < 84 && keys.semaphores.length > 0) return permits(chance, keys);
  if (lot < 94) {
    // Now and then one by itself, as a mutex, among those who want several.
    return chance.happens(0.2)
      ? { as: "mutex", key: chance.pick(keys.sets) }
      : allOf(chance.shuffled(keys.sets).slice(0, chance.whole(2, keys.sets.length)));
  }
  return lot < 98
    ? { as: "reentrant", key: chance.pick(keys.reentrant) }
    : { as: "election", key: chance.pick(keys.elections) };
}

function mutex(chance: Chance, { hot, lukewarm, own }: Keys, index: number): Lock {
  const key = chance.pick([hot, hot, hot, chance.pick(lukewarm), own[index] as string]);
  return { as: "mutex", key };
}

function permits(chance: Chance, { semaphores }: Keys): Lock {
  const { key, limit } = chance.pick(semaphores);
  return { as: "semaphore", key, limit, permits: chance.pick([1, 1, 1, 2, 3, limit]) };
}

function allOf(keys: readonly string[]): Lock {
  return { as: "all", key: keys[0] as string, keys };
}

/** Mostly short; now and then longer than the TTL. Those that may be beside each other stay for a while, so that they are. */
function holdMs(chance: Chance, as: LockName, ttlMs: number): number {
  const lot = chance.between(0, 100);
  if (as === "election") return chance.between(0, 1_500);
  if (lot < 85) return chance.between(0, as === "read" || as === "semaphore" ? 150 : 5);
  return lot < 99 ? chance.between(5, 80) : chance.between(80, ttlMs * 1.2);
}
