import { table } from "../compare/table.ts";
import { checkNames, type CheckName } from "./pairs.ts";
import { failuresOf, type PairResult } from "./run/run-pair.ts";

/** The results as a table, and below it the failures and the errors of each pair. */
export function toText(results: readonly PairResult[]): string {
  const head = [
    "library",
    "setting",
    "turns (ours, theirs)",
    "overlaps",
    "to ours: median, p99 ms",
    "to theirs: median, p99 ms",
    ...(results.some(({ checks }) => checks.length > 0) ? checkNames.map((name) => `${name}, ms`) : []),
  ];
  const notes = results.flatMap((result) => [
    ...failuresOf(result).map((text) => `${result.pair.name}: FAILED: ${text}`),
    ...limitsOf(result).map((text) => `${result.pair.name}: limit of the library: ${text}`),
    ...result.errors.slice(0, 3).map((text) => `${result.pair.name}: error: ${text.slice(0, 300)}`),
  ]);
  return [table(head, results.map(rowOf)), ...notes].join("\n") + "\n";
}

function rowOf({ pair, contention, handover, checks, violations }: PairResult): string[] {
  return [
    pair.library,
    settingOf(pair.holdfast),
    `${contention.turns.ours}, ${contention.turns.theirs}`,
    String(violations.length),
    percentiles(handover.times.ours),
    percentiles(handover.times.theirs),
    ...checks.map(({ servedMs, failure }) => (servedMs === null ? (failure ?? "") : servedMs.toFixed(0))),
  ];
}

function settingOf({ options, layout, mode, keys }: PairResult["pair"]["holdfast"]): string {
  const given = { ...(layout === undefined ? {} : { layout }), ...(mode && { mode }), ...options };
  const entries = Object.entries(given).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return [...entries, ...(keys === undefined ? [] : [`keys ${keys.join(" ")}`])].join(", ");
}

function percentiles(times: readonly number[]): string {
  if (times.length === 0) {
    return "-";
  }
  const sorted = times.toSorted((one, other) => one - other);
  const at = (part: number): string =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] as number).toFixed(1);
  return `${at(0.5)}, ${at(0.99)}`;
}

function limitsOf({ pair, checks }: PairResult): string[] {
  return checks
    .filter(({ check, failure }) => failure !== null && pair.limits?.[check] !== undefined)
    .map(({ check, failure }) => `${check}: ${failure} (${pair.limits?.[check as CheckName]})`);
}
