import type { HeldLock } from "./contestant.ts";

/** Holds a lease through a library's callback form, for ever: the process that holds ends, not the callback. */
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
