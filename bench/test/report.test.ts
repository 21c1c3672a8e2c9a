import { expect, test } from "vitest";

import { toMarkdown, type Report } from "../src/report.ts";
import type { Entrant } from "../src/roster.ts";
import type { Sample, Suite } from "../src/suite.ts";

const suite: Suite = {
  name: "redlock-hot",
  title: "A title",
  method: "A method.",
  entrants: ["redlock", "redlock-tries", "holdfast"],
  reference: "redlock",
  ground: "quorum",
  rounds: 5,
  cases: ["a"],
  metrics: [
    { id: "rate", label: "rate", digits: 0, best: "most" },
    { id: "p99", label: "p99", digits: 0, best: "least" },
    { id: "max", label: "max", digits: 0, against: "p99" },
  ],
  async *measure() {},
};

function sample(entrant: Entrant, values: Sample["values"]): Sample {
  const nothingFailed = { failures: 0, firstFailure: null };
  return {
    suite: suite.name,
    entrant,
    round: 1,
    case: "a",
    settings: "as it comes",
    values,
    ...nothingFailed,
  };
}

function reportOf(...samples: Sample[]): string {
  const environment: Report["environment"] = {
    node: "",
    redis: "",
    system: "",
    cpu: "",
    cpus: 1,
    placement: "",
    memoryGiB: 1,
    loadAverage: 0,
    versions: { redlock: "5", holdfast: "1" },
  };
  return toMarkdown({ date: new Date(0), environment, suites: [suite], outcome: { samples, notes: [] } });
}

test("ratios stand behind what they are of, to the reference, the best peer, and the best peer's other metric", () => {
  const report = reportOf(
    sample("redlock", { rate: 10, p99: 90, max: 100 }),
    sample("redlock-tries", { rate: 20, p99: 60, max: 60 }),
    sample("holdfast", { rate: 40, p99: 15, max: 30 }),
  );
  const lines = report.split("\n").filter((line) => line.startsWith("|"));
  expect(lines[0]?.split("|").map((cell) => cell.trim())).toEqual(
    ["", "contestant", "rate", "× redlock", "× best peer", "p99", "× redlock", "× best peer"].concat([
      "max",
      "× best peer's p99",
      "",
    ]),
  );
  expect(lines[4]?.replaceAll(" ", "")).toBe("|holdfast|40|4.00|2.00|15|0.17|0.25|30|0.50|");
});

test("what others have none of is infinitely more, and what nobody has is no number", () => {
  const report = reportOf(sample("redlock", { rate: 0 }), sample("holdfast", { rate: 40 }));
  const lines = report.split("\n").filter((line) => line.startsWith("| "));
  expect(lines.at(-1)?.replaceAll(" ", "")).toBe("|holdfast|40|∞|∞|–|–|–|–|–|");
});

test("a section says how many rounds its medians are of", () => {
  expect(reportOf()).toContain("A method. Medians of 5 rounds.");
});

test("each set-up's settings stand below the results, with the version of its package", () => {
  const report = reportOf(sample("redlock", {}), sample("redlock-tries", {}), sample("redlock", {}));
  expect(report).toMatch(/- redlock \(5\): as it comes\n- redlock-tries \(5\): as it comes\n$/);
});
