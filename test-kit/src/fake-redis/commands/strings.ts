import { integerOf } from "../numbers.ts";
import { ok, ServerError, type Reply } from "../reply.ts";
import { unknownOption, type Commands, type Server } from "./command.ts";

export const strings: Commands = {
  get: { arity: 2, run: ({ store }, key = "") => store.string(key) ?? null },
  getrange: {
    arity: 4,
    run: ({ store }, key = "", first = "", last = "") =>
      (store.string(key) ?? "").slice(integerOf(first), integerOf(last) + 1),
  },
  set: { arity: -3, flags: ["write", "memory"], run: set },
};

function set({ store }: Server, key = "", value = "", ...options: string[]): Reply {
  let expiresAt: number | undefined;
  let mayWrite = true;
  const rest = options.values();
  for (const option of rest) {
    const name = option.toLowerCase();
    if (name === "px") {
      const ttlMs = integerOf(String(rest.next().value));
      if (ttlMs <= 0) {
        throw new ServerError("ERR invalid expire time in 'set' command");
      }
      expiresAt = store.now() + ttlMs;
    } else if (name === "keepttl") {
      expiresAt = store.endOf(key) ?? undefined;
    } else if (name === "nx" || name === "xx") {
      mayWrite = store.has(key) === (name === "xx");
    } else {
      unknownOption("SET", option);
    }
  }
  if (!mayWrite) {
    return null;
  }
  store.put(key, value, expiresAt);
  return ok;
}
