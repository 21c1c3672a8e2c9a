import { isPeer, packageOf, type ContestantName } from "../run/contestant-list.ts";
import { isRival } from "../run/engine-contestants.ts";
import { median } from "../measure/statistics.ts";
import type { Metric, Note, Sample, SuiteDescription } from "../suites/suite.ts";
import type { Environment } from "../run/environment.ts";
import type { Contestants, Figure, Row, RunDescription, SuiteRecord } from "./record.ts";

type Samples = readonly Sample[];

/** The record of a suite. Every figure is a median over the rounds, with the smallest and the largest figure of the rounds. */
export function summarize(
  suite: SuiteDescription,
  { samples, notes }: { readonly samples: Samples; readonly notes: readonly Note[] },
  { date, commit, environment }: RunDescription<Environment["versions"]>,
): SuiteRecord {
  const { name, title, method, rounds, panels, cases } = suite;
  const { versions } = environment;
  const ours = samples.filter((sample) => sample.suite === name);
  const inCase = (label: string): Samples => ours.filter((sample) => sample.case === label);
  return {
    suite: name,
    title,
    date,
    commit,
    environment: {
      ...environment,
      versions: Object.entries(versions)
        .map((one) => one.join(" "))
        .join(", "),
    },
    method,
    rounds,
    settings: settingsOf(ours, versions),
    absent: suite.absent.map(({ contestants, reason }) => `${contestants.join(", ")}: ${reason}.`),
    notes: notes
      .filter((note) => note.suite === name)
      .map(({ contestant, text }) => `${contestant}: ${text}.`),
    metrics: suite.metrics.map((metric) => {
      const { id, label, digits } = metric;
      return { id, label, digits, ratios: ratiosOf(suite, metric).map((ratio) => ratio.label) };
    }),
    panels,
    cases: Object.fromEntries(cases.map((label) => [label, contestantsIn(suite, inCase(label))])),
  };
}

/** A metric as a multiple of a metric of another contestant. */
interface Ratio {
  readonly label: string;
  readonly metric: Metric;
  readonly divisor: Metric;
  /** `null`: the best peer of the case. */
  readonly to: ContestantName | null;
}

function ratiosOf(suite: SuiteDescription, metric: Metric): readonly Ratio[] {
  const { reference, metrics } = suite;
  const ratio = (label: string, to: ContestantName | null, divisor = metric): Ratio[] => [
    { label: `× ${label}`, metric, divisor, to },
  ];
  const other = metrics.find(({ id }) => id === metric.against);
  return [
    ...(metric.best && reference !== null ? ratio(reference, reference) : []),
    ...(metric.best && hasPeers(suite) ? ratio("best peer", null) : []),
    ...(other && hasPeers(suite) ? ratio(`best peer's ${other.label}`, null, other) : []),
  ];
}

/** One row for each contestant of the suite, in its order, including contestants without figures. The absent ones come last. */
function contestantsIn(suite: SuiteDescription, samples: Samples): Contestants {
  const of = (name: ContestantName | undefined): Samples =>
    samples.filter(({ contestant }) => contestant === name);
  const ratios = suite.metrics
    .flatMap((metric) => ratiosOf(suite, metric))
    .map((ratio) => ({ ...ratio, others: of(ratio.to ?? bestPeer(ratio.divisor, suite, samples)) }));
  const all = [...suite.contestants, ...suite.absent.flatMap(({ contestants }) => contestants)];
  return Object.fromEntries(all.map((contestant) => [contestant, rowOf(suite, of(contestant), ratios)]));
}

function rowOf(
  { metrics, rounds }: SuiteDescription,
  own: Samples,
  ratios: readonly (Ratio & { readonly others: Samples })[],
): Row {
  if (own.length === 0) return { median: [], ratios: [] };
  const values = metrics.map((metric) => own.map((sample) => valueOf(sample, metric)));
  const least = values.map((list) => figure(Math.min(...list)));
  const most = values.map((list) => figure(Math.max(...list)));
  const series = own.at(-1)?.series;
  return {
    median: values.map((list) => figure(median(list))),
    ...(rounds > 1 && { least, most }),
    ratios: ratios.map((ratio) => figure(medianRatio(ratio, own, ratio.others))),
    ...(series && { series }),
  };
}

/** The median of the ratios within each round, because drift between rounds does not affect these ratios. */
function medianRatio({ metric, divisor }: Ratio, own: Samples, others: Samples): number {
  const ratios = own.flatMap((sample) => {
    const other = others.find(({ round }) => round === sample.round);
    return other ? [valueOf(sample, metric) / valueOf(other, divisor)] : [];
  });
  return median(ratios);
}

/** Six digits, because more are noise. A large figure keeps all digits before the point, because tables print them. */
function figure(value: number): Figure {
  if (value === Infinity) return "∞";
  if (!Number.isFinite(value)) return null;
  return Math.abs(value) >= 10_000 ? Math.round(value) : Number(value.toPrecision(6));
}

function valueOf({ values }: Sample, { id }: Metric): number {
  return values[id] ?? Number.NaN;
}

/** Whether the suite has a peer to compare with. */
function hasPeers({ contestants }: SuiteDescription): boolean {
  return contestants.some(isCompetitor);
}

function isCompetitor(contestant: ContestantName): boolean {
  return isRival(contestant) || isPeer(packageOf(contestant));
}

function bestPeer(
  metric: Metric,
  { contestants }: SuiteDescription,
  samples: Samples,
): ContestantName | undefined {
  const sign = metric.best === "most" ? -1 : 1;
  const valueIn = (contestant: ContestantName): number =>
    median(samples.filter((one) => one.contestant === contestant).map((one) => valueOf(one, metric)));
  return contestants
    .filter((contestant) => isCompetitor(contestant) && !Number.isNaN(valueIn(contestant)))
    .toSorted((a, b) => sign * (valueIn(a) - valueIn(b)))[0];
}

function settingsOf(samples: Samples, versions: Environment["versions"]): readonly string[] {
  const lines = samples.map(({ contestant, settings }) => `${named(contestant, versions)}: ${settings}`);
  return [...new Set(lines)];
}

/** The clients that contestants use which are no packages. */
const clients: readonly string[] = ["ioredis", "pg", "mysql2"];

function named(contestant: ContestantName, versions: Environment["versions"]): string {
  const used = packageOf(contestant);
  const version = versions[used];
  if (version === undefined) return contestant;
  return `${contestant} (${clients.includes(used) ? `${used} ${version}` : version})`;
}
