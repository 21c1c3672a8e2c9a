import type { CapacitySize } from "../suites/capacity.ts";
import type { ChurnSize } from "../suites/churn.ts";
import type { HotSize } from "../suites/hot.ts";
import type { LatencySize } from "../suites/latency.ts";
import type { MemorySize } from "../suites/memory.ts";
import type { RedlockHotSize } from "../suites/redlock-hot.ts";
import type { RedlockUncontendedSize } from "../suites/redlock-uncontended.ts";
import type { RenewalSize } from "../suites/renewals.ts";
import type { SharedSize } from "../suites/shared.ts";
import type { SkewSize } from "../suites/skew.ts";
import type { TakeoverSize } from "../suites/takeover.ts";
import type { UncontendedSize } from "../suites/uncontended.ts";
import type { WaitingSize } from "../suites/waiting.ts";
import type { Timing } from "../measure/window.ts";

/** The sizes of the suites. */
export interface Sizes {
  readonly rounds: number;
  readonly redlockRounds: number;
  readonly uncontended: UncontendedSize;
  /** Longer than others, because the slowest peer polls only four times a second. */
  readonly hot: HotSize;
  readonly skew: SkewSize;
  readonly waiting: WaitingSize;
  readonly renewals: readonly RenewalSize[];
  readonly takeover: TakeoverSize;
  readonly latency: LatencySize;
  readonly kinds: Timing;
  readonly shared: SharedSize;
  readonly memory: MemorySize;
  readonly churn: ChurnSize;
  readonly capacity: CapacitySize;
  readonly service: Timing;
  readonly commandLineStarts: number;
  readonly redlockUncontended: RedlockUncontendedSize;
  readonly redlockHot: RedlockHotSize;
  readonly redlockLatency: LatencySize;
  readonly engineUncontended: UncontendedSize;
  readonly engineHot: HotSize;
}

export const fullSizes: Sizes = {
  rounds: 3,
  redlockRounds: 5,
  uncontended: { timing: { warmUpMs: 2_000, measureMs: 1_000 }, taskCounts: [1, 8, 64, 512] },
  hot: { timing: { warmUpMs: 2_000, measureMs: 3_000 }, holdsMs: [0, 1, 10], processCounts: [1, 4, 8] },
  skew: { timing: { warmUpMs: 800, measureMs: 2_000 }, keys: 10_000, processes: 4, holdsMs: [0, 1] },
  // Longer than five seconds, after which a waiter without a notification polls.
  waiting: { timing: { warmUpMs: 2_000, measureMs: 6_000 }, waiters: 10_000, keyCounts: [1, 10_000] },
  renewals: [
    { leases: 1_000, ttlMs: 4_000 },
    { leases: 10_000, ttlMs: 4_000 },
    { leases: 100_000, ttlMs: 12_000 },
  ],
  takeover: { ttlMs: 2_000, repetitions: 5 },
  latency: { timing: { warmUpMs: 500, measureMs: 3_000 }, oneWaysMs: [1, 10, 50] },
  kinds: { warmUpMs: 2_000, measureMs: 1_000 },
  shared: { timing: { warmUpMs: 2_000, measureMs: 2_000 }, processes: 4, holdsMs: [0, 1] },
  memory: { count: 10_000, usedOnce: 100_000, settleMs: 500 },
  churn: { keys: 1_000_000, minutes: 2 },
  capacity: { count: 10_000, measureMs: 2_000 },
  service: { warmUpMs: 10_000, measureMs: 5_000 },
  commandLineStarts: 20,
  redlockUncontended: {
    timing: { warmUpMs: 2_000, measureMs: 1_000 },
    taskCounts: [1, 8, 64, 512],
    sites: [
      { nodes: 5, unreachable: 0 },
      { nodes: 5, unreachable: 1 },
      { nodes: 5, unreachable: 2 },
      { nodes: 3, unreachable: 0 },
      { nodes: 3, unreachable: 1 },
    ],
  },
  // The longest measurement, so that each task gets a hundred grants and waits of several seconds end.
  redlockHot: {
    timing: { warmUpMs: 1_500, measureMs: 10_000 },
    sites: [
      { nodes: 5, unreachable: 0 },
      { nodes: 5, unreachable: 1 },
      { nodes: 5, unreachable: 2 },
      { nodes: 3, unreachable: 0 },
      { nodes: 3, unreachable: 1 },
    ],
  },
  redlockLatency: { timing: { warmUpMs: 500, measureMs: 3_000 }, oneWaysMs: [1, 10, 50] },
  // More tasks would only wait for the ten connections of a database.
  engineUncontended: { timing: { warmUpMs: 1_000, measureMs: 1_000 }, taskCounts: [1, 8, 64] },
  engineHot: { timing: { warmUpMs: 1_000, measureMs: 3_000 }, holdsMs: [0, 1], processCounts: [4] },
};

const minimalTiming: Timing = { warmUpMs: 50, measureMs: 100 };

/** The sizes of a smoke test of about one second for each suite. The figures of such short measurements are not meaningful. */
export const quickSizes: Sizes = {
  rounds: 1,
  redlockRounds: 1,
  uncontended: { timing: minimalTiming, taskCounts: [8] },
  hot: { timing: minimalTiming, holdsMs: [0], processCounts: [2] },
  skew: { timing: minimalTiming, keys: 100, processes: 2, holdsMs: [0] },
  waiting: { timing: minimalTiming, waiters: 100, keyCounts: [10] },
  renewals: [{ leases: 50, ttlMs: 600 }],
  takeover: { ttlMs: 600, repetitions: 1 },
  latency: { timing: { warmUpMs: 50, measureMs: 200 }, oneWaysMs: [2] },
  kinds: minimalTiming,
  shared: { timing: minimalTiming, processes: 2, holdsMs: [1] },
  memory: { count: 500, usedOnce: 500, settleMs: 50 },
  churn: { keys: 500, minutes: 0.01 },
  capacity: { count: 4_000, measureMs: 200 },
  service: minimalTiming,
  commandLineStarts: 1,
  redlockUncontended: { timing: minimalTiming, taskCounts: [8], sites: [{ nodes: 5, unreachable: 2 }] },
  redlockHot: { timing: { warmUpMs: 50, measureMs: 200 }, sites: [{ nodes: 3, unreachable: 1 }] },
  redlockLatency: { timing: { warmUpMs: 50, measureMs: 200 }, oneWaysMs: [2] },
  engineUncontended: { timing: minimalTiming, taskCounts: [8] },
  engineHot: { timing: minimalTiming, holdsMs: [0], processCounts: [2] },
};
