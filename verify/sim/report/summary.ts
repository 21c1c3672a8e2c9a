import type { Failure, Tally } from "./tally.ts";

/** What was played, and how fast. */
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
  const perMinute = (amount: number): string => whole((amount / seconds) * 60);
  return [
    `${whole(runs)} schedules from seed ${firstSeed} on in ${seconds.toFixed(1)} s (${(runs / seconds).toFixed(1)} per second)`,
    `${whole(grants)} grants`,
    `${whole(operations)} operations of callers (${perMinute(operations)} per minute)`,
    `${whole(commands)} scripts and commands run by servers (${perMinute(commands)} per minute)`,
    "schedules by kind:",
    ...listed(summary.kinds),
    "schedules by engine and weather:",
    ...listed(summary.weathers),
    "faults by kind:",
    ...listed(summary.faults),
    "schedules in which something is not judged, by the reason:",
    ...listed(summary.excuses),
    `${failures === 0 ? "no" : whole(failures)} failure${failures === 1 ? "" : "s"}`,
  ].join("\n");
}

function listed(amounts: Readonly<Record<string, number>>): string[] {
  const entries = Object.entries(amounts).sort(([one], [other]) => (one < other ? -1 : 1));
  const width = Math.max(18, ...entries.map(([name]) => name.length));
  return entries.map(([name, amount]) => `  ${name.padEnd(width)} ${whole(amount).padStart(9)}`);
}

function whole(amount: number): string {
  return Math.round(amount)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, " ");
}
