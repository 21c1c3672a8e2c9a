import { globMatcher } from "../glob.ts";
import { integerOf } from "../numbers.ts";
import { ServerError, Status, syntaxError, type Reply } from "../reply.ts";
import { unknownOption, type Commands, type Server } from "./command.ts";

export const keys: Commands = {
  del: { arity: -2, flags: ["write"], run: del },
  unlink: { arity: -2, flags: ["write"], run: del },
  exists: { arity: -2, run: ({ store }, ...names) => names.filter((key) => store.has(key)).length },
  type: { arity: 2, run: ({ store }, key = "") => new Status(store.typeOf(key)) },
  pttl: { arity: 2, run: pttl },
  persist: { arity: 2, flags: ["write"], run: persist },
  pexpire: {
    arity: -3,
    flags: ["write"],
    run: (server, key = "", ttlMs = "", ...conditions) =>
      expire(server, key, server.store.now() + integerOf(ttlMs), conditions),
  },
  pexpireat: {
    arity: -3,
    flags: ["write"],
    run: (server, key = "", at = "", ...conditions) => expire(server, key, integerOf(at), conditions),
  },
  scan: { arity: -2, run: scan },
};

function del({ store }: Server, ...names: string[]): number {
  return names.filter((key) => store.delete(key)).length;
}

function pttl({ store }: Server, key = ""): number {
  const end = store.endOf(key);
  return end === undefined ? -2 : end === null ? -1 : end - store.now();
}

function persist({ store }: Server, key = ""): number {
  const hasEnd = typeof store.endOf(key) === "number";
  if (hasEnd) {
    store.end(key, null);
  }
  return hasEnd ? 1 : 0;
}

/** A key without an end ends later than any other. */
function expire({ store }: Server, key: string, at: number, conditions: readonly string[]): number {
  const end = store.endOf(key);
  const present = end ?? Infinity;
  const allowed = conditions.every((condition) => {
    switch (condition.toLowerCase()) {
      case "nx":
        return end === null;
      case "xx":
        return end !== null;
      case "gt":
        return at > present;
      case "lt":
        return at < present;
      default:
        throw new ServerError(`ERR Unsupported option ${condition}`);
    }
  });
  if (end === undefined || !allowed) {
    return 0;
  }
  store.end(key, at);
  return 1;
}

/** What is there all the while is found, once. */
function scan({ store }: Server, cursor = "", ...options: string[]): Reply {
  let count = 10;
  let matches = (_key: string): boolean => true;
  for (let at = 0; at < options.length; at += 2) {
    const [option = "", value] = options.slice(at, at + 2);
    if (value === undefined) {
      throw new ServerError(syntaxError);
    } else if (option.toLowerCase() === "count") {
      count = integerOf(value);
    } else if (option.toLowerCase() === "match") {
      matches = globMatcher(value);
    } else {
      unknownOption("SCAN", option);
    }
  }
  if (count < 1) {
    throw new ServerError(syntaxError);
  }
  const rest = store.keysAfter(integerOf(cursor, "ERR invalid cursor"));
  const page = rest.slice(0, count);
  const next = rest.length > count ? String(page.at(-1)?.serial) : "0";
  return [next, page.map(({ key }) => key).filter(matches)];
}
