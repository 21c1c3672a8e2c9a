import { expect, test } from "vitest";

import type { ContestantName } from "../src/run/contestant-list.ts";
import type { Metric, Sample, SuiteDescription } from "../src/suites/suite.ts";
import type { Figure } from "../src/report/record.ts";
import { recordOf } from "./records.ts";

const rate: Metric = { id: "rate", label: "rate", digits: 0, best: "most" };
const cost: Metric = { id: "cost", label: "cost", digits: 0, best: "least" };
const size: Metric = { id: "size", label: "size", digits: 0 };

const suite: SuiteDescription = {
  name: "hot",
  title: "",
  method: "",
  contestants: ["raw", "redlock", "redis-semaphore", "holdfast"],
  absent: [],
  reference: "raw",
  rounds: 3,
  cases: ["a", "b"],
  metrics: [rate, cost, size],
  panels: [],
};

function sample(contestant: ContestantName, round: number, values: Sample["values"], label = "a"): Sample {
  const nothingFailed = { failures: 0, firstFailure: null };
  return { suite: "hot", contestant, round, case: label, settings: "", values, ...nothingFailed };
}

/** The ratios of all metrics of the contestant in the case `a`. */
function ratiosOf(
  samples: readonly Sample[],
  contestant: ContestantName,
  measured: SuiteDescription = suite,
): readonly Figure[] | undefined {
  return recordOf(measured, samples).cases["a"]?.[contestant]?.ratios;
}

test("a figure is the median over the rounds of its case, with the smallest and the largest of them", () => {
  const samples = [1, 9, 2].map((value, index) => sample("raw", index + 1, { size: value }));
  const elsewhere = sample("raw", 1, { size: 100 }, "b");
  const { cases } = recordOf({ ...suite, metrics: [size] }, [...samples, elsewhere]);
  expect(cases["a"]?.raw).toEqual({ median: [2], least: [1], most: [9], ratios: [] });
});

test("rows have the order of the suite, including those without figures, with absent contestants last", () => {
  const absent = [{ contestants: ["@verrou/core"], reason: "cannot" }] as const;
  const samples = [sample("holdfast", 1, {}), sample("raw", 1, {}), sample("redlock", 1, {}, "b")];
  const { cases } = recordOf({ ...suite, absent }, samples);
  expect(Object.keys(cases["a"] ?? {})).toEqual([...suite.contestants, "@verrou/core"]);
  expect(cases["a"]?.redlock).toEqual({ median: [], ratios: [] });
});

test("a peer without figures is not the best", () => {
  const samples = [sample("redis-semaphore", 1, { cost: 4 }), sample("holdfast", 1, { cost: 2 })];
  expect(ratiosOf(samples, "holdfast")?.[3]).toBe(0.5);
});

test("a ratio is the median of the ratios within each round", () => {
  const samples = [
    ...[10, 100, 1_000].map((value, index) => sample("raw", index + 1, { rate: value })),
    ...[20, 200, 1_000].map((value, index) => sample("holdfast", index + 1, { rate: value })),
  ];
  expect(ratiosOf(samples, "holdfast")?.[0]).toBe(2);
});

test("a round in which the reference is missing has no ratio", () => {
  const samples = [
    sample("raw", 2, { rate: 10 }),
    sample("holdfast", 1, { rate: 1_000 }),
    sample("holdfast", 2, { rate: 30 }),
  ];
  expect(ratiosOf(samples, "holdfast")?.[0]).toBe(3);
});

test("the best peer is chosen for each column on its own, and is neither raw nor Holdfast", () => {
  const samples = [
    sample("raw", 1, { rate: 1_000, cost: 1 }),
    sample("redlock", 1, { rate: 40, cost: 10 }),
    sample("redis-semaphore", 1, { rate: 50, cost: 20 }),
    sample("holdfast", 1, { rate: 100, cost: 5 }),
  ];
  expect(ratiosOf(samples, "holdfast")?.[1]).toBe(2);
  expect(ratiosOf(samples, "holdfast")?.[3]).toBe(0.5);
});

test("another set-up of a peer is a peer too", () => {
  const contestants: readonly ContestantName[] = ["redlock", "redlock-tries", "holdfast"];
  const values = { redlock: 10, "redlock-tries": 50, holdfast: 100 };
  const samples = Object.entries(values).map(([contestant, rate]) =>
    sample(contestant as ContestantName, 1, { rate }),
  );
  const measured: SuiteDescription = { ...suite, contestants, reference: "redlock", metrics: [rate] };
  expect(ratiosOf(samples, "holdfast", measured)).toEqual([10, 2]);
});

test("a metric can be reported as a multiple of the best peer in another metric", () => {
  const longest: Metric = { id: "longest", label: "longest", digits: 0, against: "cost" };
  const samples = [
    sample("redlock", 1, { cost: 10, longest: 20 }),
    sample("redis-semaphore", 1, { cost: 40, longest: 5 }),
    sample("holdfast", 1, { cost: 1, longest: 2 }),
  ];
  const metrics = [cost, longest];
  const measured: SuiteDescription = { ...suite, metrics, reference: null };
  expect(recordOf(measured, samples).metrics.map(({ ratios }) => ratios)).toEqual([
    ["× best peer"],
    ["× best peer's cost"],
  ]);
  expect(ratiosOf(samples, "holdfast", measured)).toEqual([0.1, 0.2]);
});

test("without a peer there is no ratio to the best", () => {
  expect(ratiosOf([sample("holdfast", 1, { rate: 1 })], "holdfast")?.[1]).toBeNull();
});

test("after a single round there is no range", () => {
  const measured: SuiteDescription = { ...suite, metrics: [size], rounds: 1 };
  const { cases } = recordOf(measured, [sample("raw", 1, { size: 1 / 3 })]);
  expect(cases["a"]?.raw).toEqual({ median: [0.333333], ratios: [] });
});

test("a large figure keeps its digits before the point", () => {
  const { cases } = recordOf({ ...suite, metrics: [size] }, [sample("raw", 1, { size: 54_567_248.3 })]);
  expect(cases["a"]?.raw?.median).toEqual([54_567_248]);
});
