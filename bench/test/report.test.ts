import { expect, test } from "vitest";

import { toMarkdown } from "../src/report/report.ts";
import type { ContestantName } from "../src/run/contestant-list.ts";
import type { Sample, SuiteDescription } from "../src/suites/suite.ts";
import { recordOf, sampleOf } from "./records.ts";

const suite: SuiteDescription = {
  name: "redlock-hot",
  title: "A title",
  method: "A method.",
  contestants: ["redlock", "redlock-tries", "holdfast"],
  absent: [{ contestants: ["@verrou/core"], reason: "locks one server only" }],
  reference: "redlock",
  rounds: 5,
  cases: ["a"],
  metrics: [
    { id: "rate", label: "rate", digits: 0, best: "most" },
    { id: "p99", label: "p99", digits: 0, best: "least" },
    { id: "max", label: "max", digits: 0, against: "p99" },
  ],
  panels: [],
};

const sample = (contestant: ContestantName, values: Sample["values"]): Sample =>
  sampleOf(suite, contestant, values);

const reportOf = (...samples: Sample[]): string => toMarkdown([recordOf(suite, samples)]);

test("each metric is followed by its ratios to the reference, the best peer, and the best peer's other metric", () => {
  const report = reportOf(
    sample("redlock", { rate: 10, p99: 90, max: 100 }),
    sample("redlock-tries", { rate: 20, p99: 60, max: 60 }),
    sample("holdfast", { rate: 40, p99: 15, max: 30 }),
  );
  const lines = report.split("\n").filter((line) => line.startsWith("|"));
  expect(lines[0]?.split("|").map((cell) => cell.trim())).toEqual(
    ["", "contestant", "rate", "± %", "× redlock", "× best peer", "p99", "× redlock", "× best peer"].concat([
      "max",
      "× best peer's p99",
      "",
    ]),
  );
  expect(lines[4]?.replaceAll(" ", "")).toBe("|holdfast|40|0|4.00|2.00|15|0.17|0.25|30|0.50|");
});

test("a ratio to zero is infinite, and a ratio without figures is a dash", () => {
  const report = reportOf(sample("redlock", { rate: 0 }), sample("holdfast", { rate: 40 }));
  const lines = report.split("\n").filter((line) => line.startsWith("| holdfast"));
  expect(lines[0]?.replaceAll(" ", "")).toBe("|holdfast|40|0|∞|∞|–|–|–|–|–|");
});

test("contestants without figures and absent contestants have rows, with the reason of absence below", () => {
  const report = reportOf(sample("redlock", { rate: 1 }));
  const rows = report.split("\n").filter((line) => line.startsWith("| "));
  expect(rows.map((row) => row.split("|")[1]?.trim())).toEqual(
    ["contestant", "-----------", "redlock", "redlock-tries", "holdfast", "@verrou/core"].map((text) =>
      text.startsWith("-") ? expect.stringMatching(/^-+$/) : text,
    ),
  );
  expect(report).toContain("- @verrou/core: locks one server only.");
});

test("without a peer there is no column for the best peer", () => {
  const alone: SuiteDescription = { ...suite, contestants: ["holdfast"], reference: null };
  expect(toMarkdown([recordOf(alone, [sampleOf(alone, "holdfast", { rate: 1 })])])).not.toContain(
    "best peer",
  );
});

test("the first metric has a column with its spread: half the difference of the largest and the smallest value", () => {
  const rounds = [90, 100, 120].map((rate, index) =>
    sampleOf(suite, "holdfast", { rate }, { round: index + 1 }),
  );
  const row = reportOf(...rounds)
    .split("\n")
    .find((line) => line.startsWith("| holdfast"));
  expect(row?.replaceAll(" ", "")).toMatch(/^\|holdfast\|100\|15\|/);
});

test("a single contestant has one table, with a row for each case", () => {
  const alone: SuiteDescription = { ...suite, contestants: ["holdfast"], absent: [], cases: ["a", "b"] };
  const samples = [1, 2].map((rate, index) =>
    sampleOf(alone, "holdfast", { rate }, { case: alone.cases[index] ?? "" }),
  );
  const rows = toMarkdown([recordOf(alone, samples)])
    .split("\n")
    .filter((line) => line.startsWith("| "));
  const cells = rows.map((row) => row.split("|").map((cell) => cell.trim())).map((row) => row.slice(1, 3));
  expect(cells).toEqual([
    ["case", "rate"],
    [expect.any(String), expect.any(String)],
    ["a", "1"],
    ["b", "2"],
  ]);
});

test("the head states the day, the conditions and the commit of the run", () => {
  const report = reportOf();
  expect(report).toContain("# Benchmark of 1970-01-01\n");
  expect(report).toContain("- Node v20.0.0, Redis 7.0.0 on the same machine");
  expect(report).toContain("- commit: 0123abcd\n");
});

test("a section states the number of rounds of its medians", () => {
  expect(reportOf()).toContain("A method. Medians of 5 rounds.");
});

test("the settings of each set-up follow the results, with the version of its package", () => {
  const report = reportOf(sample("redlock", {}), sample("redlock-tries", {}), sample("redlock", {}));
  expect(report).toMatch(/- redlock \(5\): as it comes\n- redlock-tries \(5\): as it comes\n$/);
});
