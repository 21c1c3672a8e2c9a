import type { Answer, Server } from "./state.ts";

/** Tells who the owners of tokens are. */
export function clients({ store }: Server, keys: readonly string[]): Answer {
  return keys.map((key) => store.hgetall(key));
}
