import { isPeer, packageOf, type Entrant } from "../run/contestant-list.ts";
import { median } from "../measure/statistics.ts";
import type { Metric, Sample, SuiteDescription } from "../suites/suite.ts";

/** One contestant in one case. Every figure is a median over the rounds. */
export interface Row {
  readonly entrant: Entrant;
  readonly cells: readonly Cell[];
}

export interface Cell {
  readonly metric: Metric;
  readonly value: number;
  /** The smallest and the largest of the rounds. */
  readonly range: readonly [smallest: number, largest: number];
  /** To the suite's reference and to the best peer, as far as the metric asks for them, in the order of the columns. */
  readonly ratios: readonly number[];
}

/** The contestants of one case in the order of the suite, those too that have no figures. */
export function summarize(
  suite: SuiteDescription,
  label: string,
  samples: readonly Sample[],
): readonly Row[] {
  const ours = samples.filter((sample) => sample.suite === suite.name && sample.case === label);
  const entrants = entrantsOf(suite);
  const best = new Map(suite.metrics.map((metric) => [metric, bestPeer(metric, entrants, ours)]));
  const toBest = (entrant: Entrant, metric: Metric, other: Metric): number =>
    ratio(ours, [entrant, metric], [best.get(other), other]);
  const ratiosOf = (entrant: Entrant, metric: Metric): readonly number[] => {
    const other = suite.metrics.find(({ id }) => id === metric.against);
    const { reference } = suite;
    return [
      ...(metric.best && reference !== null ? [ratio(ours, [entrant, metric], [reference, metric])] : []),
      ...(metric.best && hasPeers(suite) ? [toBest(entrant, metric, metric)] : []),
      ...(other && hasPeers(suite) ? [toBest(entrant, metric, other)] : []),
    ];
  };
  return entrants.map((entrant) => ({
    entrant,
    cells: suite.metrics.map((metric) => ({
      metric,
      value: medianOf(ours, entrant, metric),
      range: rangeOf(valuesOf(ours, entrant, metric)),
      ratios: ratiosOf(entrant, metric),
    })),
  }));
}

/** Also who is absent. */
export function entrantsOf({ entrants, absent }: SuiteDescription): readonly Entrant[] {
  return [...entrants, ...absent.flatMap((absence) => absence.entrants)];
}

/** Whether there is a best peer to be compared with. */
export function hasPeers({ entrants }: SuiteDescription): boolean {
  return entrants.some(isRival);
}

function isRival(entrant: Entrant): boolean {
  return isPeer(packageOf(entrant));
}

function bestPeer(
  metric: Metric,
  entrants: readonly Entrant[],
  samples: readonly Sample[],
): Entrant | undefined {
  const sign = metric.best === "most" ? -1 : 1;
  return entrants
    .filter((entrant) => isRival(entrant) && !Number.isNaN(medianOf(samples, entrant, metric)))
    .toSorted((a, b) => sign * (medianOf(samples, a, metric) - medianOf(samples, b, metric)))[0];
}

/** The median of the ratios of each round, which drift between rounds leaves alone. */
function ratio(
  samples: readonly Sample[],
  [entrant, metric]: readonly [Entrant, Metric],
  [reference, referenceMetric]: readonly [Entrant | undefined, Metric],
): number {
  const ratios = samples
    .filter((sample) => sample.entrant === entrant)
    .flatMap(({ round, values }) => {
      const other = samples.find((sample) => sample.entrant === reference && sample.round === round);
      return other ? [valueOf(values, metric) / valueOf(other.values, referenceMetric)] : [];
    });
  return median(ratios);
}

function medianOf(samples: readonly Sample[], entrant: Entrant, metric: Metric): number {
  return median(valuesOf(samples, entrant, metric));
}

function valuesOf(samples: readonly Sample[], entrant: Entrant, metric: Metric): number[] {
  return samples.filter((sample) => sample.entrant === entrant).map(({ values }) => valueOf(values, metric));
}

function rangeOf(values: readonly number[]): [number, number] {
  return values.length === 0 ? [Number.NaN, Number.NaN] : [Math.min(...values), Math.max(...values)];
}

function valueOf(values: Sample["values"], { id }: Metric): number {
  return values[id] ?? Number.NaN;
}
