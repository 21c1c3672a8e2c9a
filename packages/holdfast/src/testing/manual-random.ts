import type { Random } from "../runtime/random.ts";

/** A reproducible source of random numbers: a seed always gives the same ids and numbers. The ids are unique, and not secret. */
export function manualRandom(seed: number): Random {
  let state = seed >>> 0;
  // mulberry32, by Tommy Ettinger: 32 bits of state, and a period of 2^32.
  function word(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }
  return {
    id: () => Array.from({ length: 4 }, () => word().toString(16).padStart(8, "0")).join(""),
    nextFloat: () => word() / 2 ** 32,
  };
}
