import { floatOf, formatNumber, integerOf } from "../numbers.ts";
import { ServerError, syntaxError, type Reply } from "../reply.ts";
import { SortedSet } from "../sorted-set.ts";
import { unknownOption, type Commands, type Server } from "./command.ts";

export const sortedSets: Commands = {
  zadd: { arity: -4, flags: ["write", "memory"], run: zadd },
  zrem: { arity: -3, flags: ["write"], run: zrem },
  zpopmin: { arity: -2, flags: ["write"], run: zpopmin },
  zremrangebyscore: { arity: 4, flags: ["write"], run: zremrangebyscore },
  zcard: { arity: 2, run: ({ store }, key = "") => store.sortedSet(key)?.size ?? 0 },
  zrank: { arity: 3, run: ({ store }, key = "", member = "") => store.sortedSet(key)?.rank(member) ?? null },
  zscore: { arity: 3, run: zscore },
  zrange: { arity: -4, run: zrange },
  zrangebyscore: { arity: -4, run: zrangebyscore },
};

function zadd({ store }: Server, key = "", ...argv: string[]): number {
  const { options, pairs } = parseZadd(argv);
  const set = store.sortedSet(key) ?? new SortedSet();
  let added = 0;
  let changed = 0;
  for (const [score, member] of pairs) {
    const present = set.score(member);
    if (satisfiesOptions(options, present, score)) {
      added += present === undefined ? 1 : 0;
      changed += present === score ? 0 : 1;
      set.put(score, member);
    }
  }
  if (set.size > 0 && !store.has(key)) {
    store.put(key, set);
  }
  return options.has("ch") ? changed : added;
}

interface ZaddArguments {
  readonly options: ReadonlySet<string>;
  readonly pairs: readonly (readonly [score: number, member: string])[];
}

function parseZadd(argv: readonly string[]): ZaddArguments {
  const end = argv.findIndex((arg) => !/^(nx|xx|gt|lt|ch|incr)$/i.test(arg));
  const count = end < 0 ? argv.length : end;
  const options = new Set(argv.slice(0, count).map((arg) => arg.toLowerCase()));
  const rest = argv.slice(count);
  const comparing = ["nx", "gt", "lt"].filter((option) => options.has(option));
  if (options.has("incr")) {
    unknownOption("ZADD", "INCR");
  } else if (rest.length === 0 || rest.length % 2 !== 0) {
    throw new ServerError(syntaxError);
  } else if (options.has("nx") && options.has("xx")) {
    throw new ServerError("ERR XX and NX options at the same time are not compatible");
  } else if (comparing.length > 1) {
    throw new ServerError("ERR GT, LT, and/or NX options at the same time are not compatible");
  }
  const scores = rest.filter((_, at) => at % 2 === 0).map((score) => floatOf(score));
  return { options, pairs: scores.map((score, at) => [score, rest[2 * at + 1] as string]) };
}

function satisfiesOptions(options: ReadonlySet<string>, present: number | undefined, score: number): boolean {
  if (present === undefined) {
    return !options.has("xx");
  }
  return !(
    options.has("nx") ||
    (options.has("gt") && score <= present) ||
    (options.has("lt") && score >= present)
  );
}

function zrem({ store }: Server, key = "", ...members: string[]): number {
  const set = store.sortedSet(key);
  const removed = members.filter((member) => set?.remove(member)).length;
  store.dropIfEmpty(key, set);
  return removed;
}

function zscore({ store }: Server, key = "", member = ""): Reply {
  const score = store.sortedSet(key)?.score(member);
  return score === undefined ? null : formatNumber(score);
}

function zpopmin({ store }: Server, key = "", ...counts: string[]): Reply {
  if (counts.length > 1) {
    throw new ServerError(syntaxError);
  }
  const count = integerOf(counts[0] ?? "1", "ERR value is out of range, must be positive");
  if (count < 0) {
    throw new ServerError("ERR value is out of range, must be positive");
  }
  const set = store.sortedSet(key);
  const popped = (set?.entries() ?? []).slice(0, count);
  for (const [member] of popped) {
    set?.remove(member);
  }
  store.dropIfEmpty(key, set);
  return listed(popped, true);
}

function zrange({ store }: Server, key = "", from = "", to = "", ...options: string[]): Reply {
  for (const option of options) {
    if (option.toLowerCase() !== "withscores") {
      unknownOption("ZRANGE", option);
    }
  }
  const [first, last] = [integerOf(from), integerOf(to)];
  const entries = store.sortedSet(key)?.entries() ?? [];
  const indexOf = (index: number): number => (index < 0 ? Math.max(0, entries.length + index) : index);
  const end = last < 0 ? entries.length + last + 1 : last + 1;
  return listed(entries.slice(indexOf(first), Math.max(0, end)), options.length > 0);
}

function zrangebyscore({ store }: Server, key = "", from = "", to = "", ...options: string[]): Reply {
  let withScores = false;
  let [offset, count] = [0, -1];
  const rest = options.values();
  for (const option of rest) {
    if (option.toLowerCase() === "withscores") {
      withScores = true;
    } else if (option.toLowerCase() === "limit") {
      [offset, count] = [integerOf(String(rest.next().value)), integerOf(String(rest.next().value))];
    } else {
      throw new ServerError(syntaxError);
    }
  }
  const isWithin = within(from, to);
  const entries = (store.sortedSet(key)?.entries() ?? []).filter(([, score]) => isWithin(score));
  const found = offset < 0 ? [] : entries.slice(offset, count < 0 ? undefined : offset + count);
  return listed(found, withScores);
}

function zremrangebyscore({ store }: Server, key = "", from = "", to = ""): number {
  const isWithin = within(from, to);
  const set = store.sortedSet(key);
  const removed = (set?.entries() ?? []).filter(([, score]) => isWithin(score));
  for (const [member] of removed) {
    set?.remove(member);
  }
  store.dropIfEmpty(key, set);
  return removed.length;
}

/** Whether a score is between two bounds. A bound after `(` is exclusive. */
function within(from: string, to: string): (score: number) => boolean {
  const [least, most] = [from, to].map((bound) =>
    floatOf(bound.replace(/^\(/, ""), "ERR min or max is not a float"),
  ) as [number, number];
  return (score) =>
    (from.startsWith("(") ? score > least : score >= least) &&
    (to.startsWith("(") ? score < most : score <= most);
}

function listed(entries: readonly (readonly [member: string, score: number])[], withScores: boolean): Reply {
  return entries.flatMap(([member, score]) => (withScores ? [member, formatNumber(score)] : [member]));
}
