import type { Answer, Server } from "./state.ts";

/** One step through the keys of this server that may be locks. */
export function scan({ store }: Server, _keys: readonly string[], args: readonly string[]): Answer {
  const [cursor, pattern, count] = args as [string, string, string];
  return store.scan(cursor, pattern, Number(count));
}
