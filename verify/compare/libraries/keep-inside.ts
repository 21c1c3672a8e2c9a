import type { Kept } from "../library.ts";

/** Holds a lease through a library's callback form, for ever: the process ends, not the callback. */
export function keepInside(
  using: (inside: (kept: Kept) => Promise<void>) => Promise<unknown>,
): Promise<Kept> {
  return new Promise((resolve, reject) => {
    using((kept) => {
      resolve(kept);
      return new Promise(() => {});
    }).catch(reject);
  });
}
