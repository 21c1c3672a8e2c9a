import { isPeer, packageOf, type ContestantName } from "../run/contestant-list.ts";
import { isRival } from "../run/engine-contestants.ts";
import { median } from "../measure/statistics.ts";
import type { Metric, Sample, SuiteDescription } from "../suites/suite.ts";

/** One contestant in one case. Every figure is a median over the rounds. */
export interface Row {
  readonly contestant: ContestantName;
  readonly cells: readonly Cell[];
}

export interface Cell {
  readonly metric: Metric;
  readonly value: number;
  /** The smallest and the largest value of the rounds. */
  readonly range: readonly [smallest: number, largest: number];
  /** The ratios that the metric requests, to the suite's reference and to the best peer, in the order of the columns. */
  readonly ratios: readonly number[];
}

/** One row for each contestant of the suite, in its order, including contestants without figures. */
export function summarize(
  suite: SuiteDescription,
  label: string,
  samples: readonly Sample[],
): readonly Row[] {
  const ours = samples.filter((sample) => sample.suite === suite.name && sample.case === label);
  const contestants = contestantsOf(suite);
  const best = new Map(suite.metrics.map((metric) => [metric, bestPeer(metric, contestants, ours)]));
  const toBest = (contestant: ContestantName, metric: Metric, other: Metric): number =>
    ratio(ours, [contestant, metric], [best.get(other), other]);
  const ratiosOf = (contestant: ContestantName, metric: Metric): readonly number[] => {
    const other = suite.metrics.find(({ id }) => id === metric.against);
    const { reference } = suite;
    return [
      ...(metric.best && reference !== null ? [ratio(ours, [contestant, metric], [reference, metric])] : []),
      ...(metric.best && hasPeers(suite) ? [toBest(contestant, metric, metric)] : []),
      ...(other && hasPeers(suite) ? [toBest(contestant, metric, other)] : []),
    ];
  };
  return contestants.map((contestant) => ({
    contestant,
    cells: suite.metrics.map((metric) => ({
      metric,
      value: medianOf(ours, contestant, metric),
      range: rangeOf(valuesOf(ours, contestant, metric)),
      ratios: ratiosOf(contestant, metric),
    })),
  }));
}

/** All contestants of the suite, including the absent ones. */
export function contestantsOf({ contestants, absent }: SuiteDescription): readonly ContestantName[] {
  return [...contestants, ...absent.flatMap((absence) => absence.contestants)];
}

/** Whether the suite has a peer to compare with. */
export function hasPeers({ contestants }: SuiteDescription): boolean {
  return contestants.some(isCompetitor);
}

function isCompetitor(contestant: ContestantName): boolean {
  return isRival(contestant) || isPeer(packageOf(contestant));
}

function bestPeer(
  metric: Metric,
  contestants: readonly ContestantName[],
  samples: readonly Sample[],
): ContestantName | undefined {
  const sign = metric.best === "most" ? -1 : 1;
  return contestants
    .filter((contestant) => isCompetitor(contestant) && !Number.isNaN(medianOf(samples, contestant, metric)))
    .toSorted((a, b) => sign * (medianOf(samples, a, metric) - medianOf(samples, b, metric)))[0];
}

/** The median of the ratios within each round, because drift between rounds does not affect these ratios. */
function ratio(
  samples: readonly Sample[],
  [contestant, metric]: readonly [ContestantName, Metric],
  [reference, referenceMetric]: readonly [ContestantName | undefined, Metric],
): number {
  const ratios = samples
    .filter((sample) => sample.contestant === contestant)
    .flatMap(({ round, values }) => {
      const other = samples.find((sample) => sample.contestant === reference && sample.round === round);
      return other ? [valueOf(values, metric) / valueOf(other.values, referenceMetric)] : [];
    });
  return median(ratios);
}

function medianOf(samples: readonly Sample[], contestant: ContestantName, metric: Metric): number {
  return median(valuesOf(samples, contestant, metric));
}

function valuesOf(samples: readonly Sample[], contestant: ContestantName, metric: Metric): number[] {
  return samples
    .filter((sample) => sample.contestant === contestant)
    .map(({ values }) => valueOf(values, metric));
}

function rangeOf(values: readonly number[]): [number, number] {
  return values.length === 0 ? [Number.NaN, Number.NaN] : [Math.min(...values), Math.max(...values)];
}

function valueOf(values: Sample["values"], { id }: Metric): number {
  return values[id] ?? Number.NaN;
}
