import type { HeldLock } from "../library.ts";

/** Holds a lease through a library's callback form, for ever: the process ends, not the callback. */
export function holdInsideCallback(
  using: (inside: (held: HeldLock) => Promise<void>) => Promise<unknown>,
): Promise<HeldLock> {
  return new Promise((resolve, reject) => {
    using((held) => {
      resolve(held);
      return new Promise(() => {});
    }).catch(reject);
  });
}
