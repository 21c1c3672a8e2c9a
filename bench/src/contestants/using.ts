import type { Held } from "./contestant.ts";

/** Holds a lease through a library's callback form, for ever: the process that holds ends, not the callback. */
export function holdInside(
  using: (routine: (signal: AbortSignal) => Promise<void>) => Promise<unknown>,
): Promise<Held> {
  return new Promise((resolve, reject) => {
    const forEver = new Promise<void>(() => {});
    using(async (signal) => {
      resolve({ isLost: () => signal.aborted });
      await forEver;
    }).catch(reject);
  });
}
