import type { Keys } from "../plan/plan.ts";

/** The fixed keys of a run, without those of its latches. */
export function keyNames(keys: Keys): string[] {
  return [
    keys.hot,
    ...keys.lukewarm,
    ...keys.own,
    ...keys.readWrite,
    ...keys.semaphores.map(({ key }) => key),
    ...keys.sets,
    ...keys.reentrant,
    ...keys.elections,
  ];
}
