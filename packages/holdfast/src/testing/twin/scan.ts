import { requirePrimary, type Answer, type Server } from "./state.ts";

/** One step through the keys of this server that may be locks. */
export function scan(server: Server, _keys: readonly string[], args: readonly string[]): Answer {
  const [cursor, pattern, count] = args as [string, string, string];
  requirePrimary(server);
  return server.store.scan(cursor, pattern, Number(count));
}
