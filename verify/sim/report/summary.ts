import type { Failure, Tally } from "./tally.ts";

/** The figures of a run, with its duration. */
export interface Summary extends Tally {
  readonly firstSeed: number;
  readonly seconds: number;
  readonly failures: number;
}

export function summaryOf(tally: Tally, failed: readonly Failure[], firstSeed: number, ms: number): Summary {
  return { firstSeed, ...tally, failures: failed.length, seconds: ms / 1_000 };
}

export function summaryText(summary: Summary): string {
  const { runs, grants, operations, commands, failures, seconds, firstSeed } = summary;
  const perMinute = (amount: number): string => formatInteger((amount / seconds) * 60);
  return [
    `${formatInteger(runs)} schedules from seed ${firstSeed} on in ${seconds.toFixed(1)} s (${(runs / seconds).toFixed(1)} per second)`,
    `${formatInteger(grants)} grants`,
    `${formatInteger(operations)} operations of callers (${perMinute(operations)} per minute)`,
    `${formatInteger(commands)} scripts and commands run by servers (${perMinute(commands)} per minute)`,
    "schedules by kind:",
    ...formatAmounts(summary.kinds),
    "schedules by engine and scenario:",
    ...formatAmounts(summary.scenarios),
    "faults by kind:",
    ...formatAmounts(summary.faults),
    "schedules with an excused check, by reason:",
    ...formatAmounts(summary.excuses),
    `${failures === 0 ? "no" : formatInteger(failures)} failure${failures === 1 ? "" : "s"}`,
  ].join("\n");
}

function formatAmounts(amounts: Readonly<Record<string, number>>): string[] {
  const entries = Object.entries(amounts).sort(([one], [other]) => (one < other ? -1 : 1));
  const width = Math.max(18, ...entries.map(([name]) => name.length));
  return entries.map(([name, amount]) => `  ${name.padEnd(width)} ${formatInteger(amount).padStart(9)}`);
}

function formatInteger(amount: number): string {
  return Math.round(amount)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, " ");
}
