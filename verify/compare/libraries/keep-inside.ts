import type { HeldLock } from "../library.ts";

/** Holds a lease in a library's callback form until the process ends. */
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
