import { WorkerGroup } from "../run/workers.ts";
import { assertOverlapIn } from "../run/mixed-callers.ts";
import { figures } from "../measure/figures.ts";
import { withProxies } from "../run/proxied.ts";
import { noQuorum, type ContestantName } from "../run/contestant-list.ts";
import { grantsPerSecond } from "../measure/statistics.ts";
import type { MissingContestants, Figures, Metric, Site, Suite } from "./suite.ts";
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
  /** Each with nobody else there, and with a rival. */
  readonly oneWaysMs: readonly number[];
}

/** What each round trip costs where the server is far away: a proxy lets everything through late. */
export const latency = (contestants: readonly ContestantName[], size: LatencySize, rounds: number): Suite =>
  byDistance(contestants, size, rounds, {
    name: "latency",
    title: "A server that is far away",
    topology: "server",
    reference: "raw",
    absent: [],
  });

/** The same with a majority of five nodes, all equally far away. */
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

interface Kind extends Pick<Suite, "name" | "title" | "topology" | "reference"> {
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
    method: `One task takes a lock and releases it without pause; then one in each of two processes, by turns. ${timingText(timing)}.`,
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

/** From one grant to the next, whoever gets it. */
function valuesOf({ measurements }: Window, trip: number): Record<string, number> {
  const turnMs = 1_000 / grantsPerSecond(measurements);
  const { p50, p99 } = waitsOf(measurements);
  return { trips: turnMs / trip, turnMs, p50, p99, trip };
}

function label({ processes, oneWayMs }: Case): string {
  return `${oneWayMs} ms each way, ${processes === 1 ? "alone" : "two processes"}`;
}
