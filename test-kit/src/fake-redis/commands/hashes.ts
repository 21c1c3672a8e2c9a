import { ServerError, type Reply } from "../reply.ts";
import type { Commands, Server } from "./command.ts";

export const hashes: Commands = {
  hset: { arity: -4, flags: ["write", "memory"], run: hset },
  hget: { arity: 3, run: ({ store }, key = "", field = "") => store.hash(key)?.get(field) ?? null },
  hmget: {
    arity: -3,
    run: ({ store }, key = "", ...fields) => {
      const hash = store.hash(key);
      return fields.map((field) => hash?.get(field) ?? null);
    },
  },
  hgetall: { arity: 2, run: ({ store }, key = "") => [...(store.hash(key) ?? [])].flat() },
  hexists: { arity: 3, run: ({ store }, key = "", field = "") => (store.hash(key)?.has(field) ? 1 : 0) },
  hlen: { arity: 2, run: ({ store }, key = "") => store.hash(key)?.size ?? 0 },
  hdel: { arity: -3, flags: ["write"], run: hdel },
};

function hset({ store }: Server, key = "", ...pairs: string[]): Reply {
  if (pairs.length % 2 !== 0) {
    throw new ServerError("ERR wrong number of arguments for 'hset' command");
  }
  const hash = store.hash(key) ?? store.put(key, new Map<string, string>());
  const sizeBefore = hash.size;
  for (let at = 0; at < pairs.length; at += 2) {
    hash.set(pairs[at] as string, pairs[at + 1] as string);
  }
  return hash.size - sizeBefore;
}

function hdel({ store }: Server, key = "", ...fields: string[]): number {
  const hash = store.hash(key);
  const removed = fields.filter((field) => hash?.delete(field)).length;
  store.dropIfEmpty(key, hash);
  return removed;
}
