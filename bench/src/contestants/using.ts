import type { HeldLock } from "./contestant.ts";

/** Holds a lease through the callback form of a library. The callback never returns, so the lease ends with the process. */
export function holdInside(
  using: (routine: (signal: AbortSignal) => Promise<void>) => Promise<unknown>,
): Promise<HeldLock> {
  return new Promise((resolve, reject) => {
    const never = new Promise<void>(() => {});
    using(async (signal) => {
      resolve({ isLost: () => signal.aborted });
      await never;
    }).catch(reject);
  });
}
