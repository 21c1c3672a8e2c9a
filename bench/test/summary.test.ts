import { expect, test } from "vitest";

import type { ContestantName } from "../src/run/contestant-list.ts";
import type { Metric, Sample, SuiteDescription } from "../src/suites/suite.ts";
import { summarize, type Cell } from "../src/report/summary.ts";

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

function cell(samples: readonly Sample[], contestant: ContestantName, metric: Metric): Cell | undefined {
  const row = summarize(suite, "a", samples).find((one) => one.contestant === contestant);
  return row?.cells.find((one) => one.metric === metric);
}

test("a figure is the median over the rounds of its case", () => {
  const samples = [1, 9, 2].map((value, index) => sample("raw", index + 1, { size: value }));
  const elsewhere = sample("raw", 1, { size: 100 }, "b");
  expect(cell([...samples, elsewhere], "raw", size)).toEqual({
    metric: size,
    value: 2,
    range: [1, 9],
    ratios: [],
  });
});

test("rows have the order of the suite, including those without figures, with absent contestants last", () => {
  const absent = [{ contestants: ["@verrou/core"], reason: "cannot" }] as const;
  const samples = [sample("holdfast", 1, {}), sample("raw", 1, {}), sample("redlock", 1, {}, "b")];
  expect(summarize({ ...suite, absent }, "a", samples).map(({ contestant }) => contestant)).toEqual([
    ...suite.contestants,
    "@verrou/core",
  ]);
});

test("a peer without figures is not the best", () => {
  const samples = [sample("redis-semaphore", 1, { cost: 4 }), sample("holdfast", 1, { cost: 2 })];
  expect(cell(samples, "holdfast", cost)?.ratios[1]).toBe(0.5);
});

test("a ratio is the median of the ratios within each round", () => {
  const samples = [
    ...[10, 100, 1_000].map((value, index) => sample("raw", index + 1, { rate: value })),
    ...[20, 200, 1_000].map((value, index) => sample("holdfast", index + 1, { rate: value })),
  ];
  expect(cell(samples, "holdfast", rate)?.ratios[0]).toBe(2);
});

test("a round in which the reference is missing has no ratio", () => {
  const samples = [
    sample("raw", 2, { rate: 10 }),
    sample("holdfast", 1, { rate: 1_000 }),
    sample("holdfast", 2, { rate: 30 }),
  ];
  expect(cell(samples, "holdfast", rate)?.ratios[0]).toBe(3);
});

test("the best peer is chosen for each column on its own, and is neither raw nor Holdfast", () => {
  const samples = [
    sample("raw", 1, { rate: 1_000, cost: 1 }),
    sample("redlock", 1, { rate: 40, cost: 10 }),
    sample("redis-semaphore", 1, { rate: 50, cost: 20 }),
    sample("holdfast", 1, { rate: 100, cost: 5 }),
  ];
  expect(cell(samples, "holdfast", rate)?.ratios[1]).toBe(2);
  expect(cell(samples, "holdfast", cost)?.ratios[1]).toBe(0.5);
});

test("another set-up of a peer is a peer too", () => {
  const contestants: readonly ContestantName[] = ["redlock", "redlock-tries", "holdfast"];
  const values = { redlock: 10, "redlock-tries": 50, holdfast: 100 };
  const samples = Object.entries(values).map(([contestant, rate]) =>
    sample(contestant as ContestantName, 1, { rate }),
  );
  const [, , row] = summarize({ ...suite, contestants, reference: "redlock" }, "a", samples);
  expect(row?.cells[0]?.ratios).toEqual([10, 2]);
});

test("a metric can be reported as a multiple of the best peer in another metric", () => {
  const longest: Metric = { id: "longest", label: "longest", digits: 0, against: "cost" };
  const samples = [
    sample("redlock", 1, { cost: 10, longest: 20 }),
    sample("redis-semaphore", 1, { cost: 40, longest: 5 }),
    sample("holdfast", 1, { cost: 1, longest: 2 }),
  ];
  const metrics = [cost, longest];
  const [, , , row] = summarize({ ...suite, metrics, reference: null }, "a", samples);
  expect(row?.cells.map(({ ratios }) => ratios)).toEqual([[0.1], [0.2]]);
});

test("without a peer there is no ratio to the best", () => {
  expect(cell([sample("holdfast", 1, { rate: 1 })], "holdfast", rate)?.ratios[1]).toBeNaN();
});
