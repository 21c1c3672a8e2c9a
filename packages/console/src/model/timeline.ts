import type { PastHold } from "../api/types.ts";

/** A bar of the timeline. Places are fractions of its width. */
export interface Bar {
  readonly hold: PastHold;
  readonly from: number;
  readonly width: number;
}

export interface Timeline {
  readonly bars: readonly Bar[];
  readonly ticks: readonly { readonly at: number; readonly ms: number }[];
  readonly startMs: number;
}

const steps = [
  1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000,
  3_600_000, 7_200_000, 14_400_000, 28_800_000, 43_200_000, 86_400_000,
];
const mostTicks = 6;
/** A bar that is shorter could not be seen. */
const leastWidth = 0.003;

/** Lays out the holds from the oldest until `now`. Ticks are at round ages: "5m", "10m" before now. */
export function timelineOf(holds: readonly PastHold[], now: number): Timeline {
  const startMs = Math.min(...holds.map(({ since }) => since), now - 10_000);
  const span = now - startMs;
  const place = (ms: number): number => Math.min(1, Math.max(0, (ms - startMs) / span));
  const bars = holds.map((hold) => {
    const from = place(hold.since);
    const width = Math.max(leastWidth, place(hold.until ?? now) - from);
    return { hold, from: Math.min(from, 1 - width), width };
  });
  const step =
    steps.find((each) => span / each <= mostTicks) ?? Math.ceil(span / mostTicks / 86_400_000) * 86_400_000;
  const count = Math.floor(span / step);
  const ticks = Array.from({ length: count }, (_, index) => {
    const ms = (index + 1) * step;
    return { at: place(now - ms), ms };
  });
  return { bars, ticks, startMs };
}

/** The lane of each bar, so that bars of a semaphore or of readers do not cover each other. */
export function lanesOf(bars: readonly Bar[], mostLanes: number): number[] {
  const ends: number[] = [];
  const byStart = bars.map((bar, index) => ({ bar, index })).toSorted((a, b) => a.bar.from - b.bar.from);
  const lanes = bars.map(() => 0);
  for (const { bar, index } of byStart) {
    const free = ends.findIndex((end) => end <= bar.from + 1e-9);
    const lane = free >= 0 ? free : Math.min(ends.length, mostLanes - 1);
    ends[lane] = bar.from + bar.width;
    lanes[index] = lane;
  }
  return lanes;
}

/**
 * The holds of the service's history and those that the page has seen, the newest first. The history knows better how a hold ended, and the
 * page knows sooner that it has ended.
 */
export function mergedHolds(
  known: readonly PastHold[],
  seen: readonly PastHold[],
  isShared: boolean,
): PastHold[] {
  const identity = ({ owner, fencingToken, since }: PastHold): string => `${owner} ${fencingToken ?? since}`;
  const identities = new Set(known.map(identity));
  const others = seen.filter((hold) => !identities.has(identity(hold)));
  const ended = new Map(seen.filter(({ until }) => until !== null).map((hold) => [identity(hold), hold]));
  const present = known.map((hold) => (hold.until === null ? (ended.get(identity(hold)) ?? hold) : hold));
  const holds = [...present, ...others].toSorted((a, b) => b.since - a.since);
  return isShared ? holds : holds.map((hold, index) => endedBy(hold, holds[index - 1]));
}

/** A hold of an exclusive lock ended at the latest when the next one began. */
function endedBy(hold: PastHold, next: PastHold | undefined): PastHold {
  if (next === undefined || (hold.until !== null && hold.until <= next.since)) return hold;
  return { ...hold, until: Math.max(hold.since, next.since), end: hold.end ?? "unknown" };
}
