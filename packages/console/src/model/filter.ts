import { parseDuration } from "./duration.ts";
import { heldMs, isLong, isStale, leftMs, type Row } from "./row.ts";
import { lockStates } from "./states.ts";

/** A parsed text of the filter box. */
export interface Filter {
  readonly matches: (row: Row, now: number) => boolean;
  /** The words that are no valid term, with the expected form. */
  readonly problems: readonly string[];
  /** The prefix of all shown keys, if the text names one. */
  readonly prefix: string;
}

type Test = (row: Row, now: number) => boolean;

const kinds = ["mutex", "read-write", "semaphore", "latch"];
const stateWords = [...lockStates.map((state) => state.replace(" ", "-")), "stale", "waiting"];

/**
 * Parses a filter. Its terms are `prefix:`, `owner:`, `label.NAME:`, `reason:`, `kind:`, `state:`, `waiters>N`, `held>5m`, `left<10s`,
 * `foreign`, `stale`, `long` and plain words. A row matches all terms. `-` before a term negates it, and quotes keep spaces.
 */
export function parseFilter(text: string): Filter {
  const problems: string[] = [];
  let prefix = "";
  const tests = words(text).map((word) => {
    const isNegated = word.startsWith("-") && word.length > 1;
    const term = isNegated ? word.slice(1) : word;
    if (!isNegated && term.startsWith("prefix:")) prefix = term.slice("prefix:".length);
    const parsed = testOf(term);
    if (typeof parsed === "string") {
      problems.push(parsed);
      return undefined;
    }
    return isNegated ? (row: Row, now: number) => !parsed(row, now) : parsed;
  });
  const valid = tests.filter((test) => test !== undefined);
  return { matches: (row, now) => valid.every((test) => test(row, now)), problems, prefix };
}

/** The words of a text. Quotes keep spaces: `owner:"my app"`. */
function words(text: string): string[] {
  return [...text.matchAll(/(?:[^\s"]|"[^"]*"?)+/g)].map(([word]) => word.replaceAll('"', ""));
}

/** @returns a test, or the expected form */
function testOf(term: string): Test | string {
  const [, name = "", operator = "", value = ""] = /^([a-z][\w.-]*?)(:|>=|<=|>|<)(.*)$/i.exec(term) ?? [];
  if (operator === "") return plain(term);
  if (operator === ":") return named(name, value, term);
  return compared(name, operator, value);
}

function plain(term: string): Test {
  if (term === "foreign") return ({ state }) => state === "foreign";
  if (term === "stale") return isStale;
  if (term === "long") return isLong;
  const text = term.toLowerCase();
  return ({ key, lock }) =>
    key.toLowerCase().includes(text) ||
    lock.holders.some(({ owner, reason = "" }) => `${owner}\n${reason}`.toLowerCase().includes(text));
}

function named(name: string, value: string, term: string): Test | string {
  const text = value.toLowerCase();
  if (name.startsWith("label.")) {
    const label = name.slice("label.".length);
    return ({ lock }) => lock.holders.some(({ labels }) => contains(labels?.[label], text));
  }
  switch (name) {
    case "prefix":
      return ({ key }) => key.startsWith(value);
    case "owner":
      return ({ lock }) =>
        lock.holders.some(({ owner }) => contains(owner, text)) ||
        lock.waiters.some(({ owner }) => contains(owner, text));
    case "reason":
      return ({ lock }) => lock.holders.some(({ reason }) => contains(reason, text));
    case "kind":
      return kinds.includes(text) ? ({ lock }) => lock.kind === text : `Expected kind: ${kinds.join(", ")}`;
    case "state":
      return stateTest(text);
    default:
      return plain(term); // keys contain colons
  }
}

function stateTest(text: string): Test | string {
  if (!stateWords.includes(text)) return `Expected state: ${stateWords.join(", ")}`;
  if (text === "stale") return isStale;
  if (text === "held-long") return isLong;
  if (text === "waiting") return ({ lock }) => lock.waiterCount > 0;
  return ({ state }) => state.replace(" ", "-") === text;
}

function compared(name: string, operator: string, value: string): Test | string {
  const compare = comparisons[operator] as (a: number, b: number) => boolean;
  if (name === "waiters") {
    const count = /^\d+$/.test(value) ? Number(value) : undefined;
    if (count === undefined) return `Expected a count, such as waiters${operator}0`;
    return ({ lock }) => compare(lock.waiterCount, count);
  }
  if (name !== "held" && name !== "left") return `Expected waiters, held or left before ${operator}`;
  const ms = parseDuration(value);
  if (ms === undefined) return `Expected a duration, such as ${name}${operator}5m`;
  const measure = name === "held" ? heldMs : leftMs;
  return (row, now) => {
    const measured = measure(row, now);
    return measured !== undefined && compare(measured, ms);
  };
}

const comparisons: Readonly<Record<string, (a: number, b: number) => boolean>> = {
  ">": (a, b) => a > b,
  "<": (a, b) => a < b,
  ">=": (a, b) => a >= b,
  "<=": (a, b) => a <= b,
};

function contains(text: string | undefined, part: string): boolean {
  return text !== undefined && text.toLowerCase().includes(part);
}
