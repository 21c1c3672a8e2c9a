import { publishTo } from "./queue.ts";
import type { Answer, Server } from "./state.ts";

/** Says who we are and proves that the subscription works. */
export function hello(server: Server, keys: readonly string[], args: readonly string[]): Answer {
  const [key] = keys as [string];
  const [channel, kind, text, ttl, ...about] = args as [string, string, string, string, ...string[]];
  if (server.standing.role === "master" && about.length > 0) {
    server.store.hset(key, ...about);
    server.store.pexpire(key, Number(ttl));
  }
  const heard = kind === "n" ? 0 : publishTo(server, kind === "p" ? "p" : "s", channel, text);
  return [server.micros(), heard, server.runId, server.version, server.standing.role, server.uptimeSeconds()];
}
