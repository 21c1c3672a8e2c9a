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
      expire(server, key, { from: server.store.now(), ms: ttlMs, conditions }),
  },
  pexpireat: {
    arity: -3,
    flags: ["write"],
    run: (server, key = "", at = "", ...conditions) => expire(server, key, { from: 0, ms: at, conditions }),
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

interface Expiry {
  readonly from: number;
  /** The argument of the command in ms, relative to `from`. */
  readonly ms: string;
  readonly conditions: readonly string[];
}

/** A key without an expiry counts as the last to expire. */
function expire({ store }: Server, key: string, { from, ms, conditions }: Expiry): number {
  const end = store.endOf(key);
  const given = conditions.map((condition) => condition.toLowerCase());
  const unknown = given.findIndex((condition) => !/^(nx|xx|gt|lt)$/.test(condition));
  if (unknown >= 0) {
    throw new ServerError(`ERR Unsupported option ${conditions[unknown]}`);
  } else if (given.length > 1) {
    unknownOption("PEXPIRE", "combination");
  }
  const at = from + integerOf(ms);
  const present = end ?? Infinity;
  const isAllowed = { nx: end === null, xx: end !== null, gt: at > present, lt: at < present };
  if (end === undefined || !given.every((condition) => isAllowed[condition as keyof typeof isAllowed])) {
    return 0;
  }
  store.end(key, at);
  return 1;
}

/** A key that exists during the whole scan is returned exactly once. */
function scan({ store }: Server, cursor = "", ...options: string[]): Reply {
  const after = integerOf(cursor, "ERR invalid cursor");
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
  const rest = store.keysAfter(after);
  const page = rest.slice(0, count);
  const next = rest.length > count ? String(page.at(-1)?.serial) : "0";
  return [next, page.map(({ key }) => key).filter(matches)];
}
