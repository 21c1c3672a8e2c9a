import { WorkerGroup } from "../run/workers.ts";
import { assertOverlapIn } from "../run/overlap.ts";
import { figures } from "../measure/figures.ts";
import { withProxies } from "../run/proxied-site.ts";
import type { ContestantName } from "../run/contestant-list.ts";
import { noQuorum, type MissingContestants } from "../run/missing-contestants.ts";
import { grantsPerSecond } from "../measure/statistics.ts";
import type { Figures, Metric, RedisSuite, Site, Suite } from "./suite.ts";
import { waitsOf } from "../measure/waits.ts";
import { timingText, measureWindow, type Timing, type Window } from "../measure/window.ts";

const metrics: readonly Metric[] = [
  { id: "trips", label: "round trips/acquisition", digits: 2, best: "least" },
  { id: "turnMs", label: "ms/acquisition", digits: 1 },
  { id: "p50", label: "acquire p50 ms", digits: 1 },
  { id: "p99", label: "acquire p99 ms", digits: 1 },
  { id: "trip", label: "bare round trip ms", digits: 2 },
];

export interface LatencySize {
  readonly timing: Timing;
  /** The delays, each measured without and with a competing process. */
  readonly oneWaysMs: readonly number[];
}

/** The cost of round trips to a distant server. A proxy delays all traffic. */
export const latency = (contestants: readonly ContestantName[], size: LatencySize, rounds: number): Suite =>
  byDistance(contestants, size, rounds, {
    name: "latency",
    title: "A server that is far away",
    topology: "server",
    reference: "raw",
    absent: [],
  });

/** The cost of round trips to a majority of five equally distant nodes. */
export const redlockLatency = (
  contestants: readonly ContestantName[],
  size: LatencySize,
  rounds: number,
): Suite =>
  byDistance(contestants, size, rounds, {
    name: "redlock-latency",
    title: "A majority of five nodes that are far away",
    topology: "quorum",
    reference: "redlock",
    absent: noQuorum,
  });

interface Kind extends Pick<RedisSuite, "name" | "title" | "topology" | "reference"> {
  readonly absent: readonly MissingContestants[];
}

interface Case {
  readonly oneWayMs: number;
  readonly processes: number;
}

function byDistance(
  contestants: readonly ContestantName[],
  { timing, oneWaysMs }: LatencySize,
  rounds: number,
  kind: Kind,
): Suite {
  const cases = [1, 2].flatMap((processes) => oneWaysMs.map((oneWayMs) => ({ processes, oneWayMs })));

  async function* measure(contestant: ContestantName, directSite: Site): AsyncGenerator<Figures, void, void> {
    for (const one of cases) {
      await using far = await withProxies(directSite, one.oneWayMs);
      await using workerGroup = await WorkerGroup.open(contestant, far.site, one.processes);
      const name = `far:${one.processes}:${one.oneWayMs}`;
      await workerGroup.start({
        kind: "cycle",
        tasks: 1,
        keys: { by: "name", name },
        ttlMs: 10_000,
        holdMs: 0,
        isWatched: true,
      });
      const window = await measureWindow(workerGroup, far.site, timing);
      assertOverlapIn(window.measurements, 1);
      yield figures(label(one), workerGroup, window, valuesOf(window, far.roundTripMs));
    }
  }

  return {
    ...kind,
    method: `One task acquires and releases a lock without pause. Then one task in each of two processes contends for the lock. ${timingText(timing)}.`,
    contestants,
    rounds,
    cases: cases.map(label),
    metrics,
    panels: [
      { form: "bars", metric: "trips" },
      { form: "spans", scale: "log", label: "acquire p50 to p99 ms", metrics: ["p50", "p99"] },
    ],
    measure,
  };
}

/** The figures of the time from one grant to the next, in any process. */
function valuesOf({ measurements }: Window, trip: number): Record<string, number> {
  const turnMs = 1_000 / grantsPerSecond(measurements);
  const { p50, p99 } = waitsOf(measurements);
  return { trips: turnMs / trip, turnMs, p50, p99, trip };
}

function label({ processes, oneWayMs }: Case): string {
  return `${oneWayMs} ms each way, ${processes === 1 ? "alone" : "two processes"}`;
}
