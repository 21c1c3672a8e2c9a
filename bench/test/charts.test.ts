import { expect, test } from "vitest";

import { drawSuite } from "../src/report/charts/draw.ts";
import { fromJson, toJson } from "../src/report/record.ts";
import { toMarkdown } from "../src/report/report.ts";
import type { SuiteDescription } from "../src/suites/suite.ts";
import { recordOf, sampleOf } from "./records.ts";

const suite: SuiteDescription = {
  name: "hot",
  title: "One <hot> key",
  method: "",
  contestants: ["raw", "redlock", "holdfast"],
  absent: [{ contestants: ["@verrou/core"], reason: "cannot" }],
  reference: "raw",
  rounds: 2,
  cases: ["hold 0 ms", "hold 1 ms"],
  metrics: [
    { id: "rate", label: "acquisitions/s", digits: 0, best: "most" },
    { id: "p50", label: "p50", digits: 0 },
    { id: "max", label: "max", digits: 0 },
  ],
  panels: [
    { form: "bars", metric: "rate" },
    { form: "spans", scale: "log", label: "wait ms", metrics: ["p50", "max"] },
    { form: "curves", label: "heap, MB", series: "heap" },
  ],
};

const record = recordOf(suite, [
  sampleOf(suite, "raw", { rate: 100, p50: 1, max: 10 }),
  sampleOf(suite, "raw", { rate: 300, p50: 1, max: 10 }, { round: 2 }),
  sampleOf(suite, "redlock", { rate: 50, p50: 0, max: Number.NaN }),
  sampleOf(
    suite,
    "holdfast",
    { rate: 400, p50: 2, max: 3 },
    {
      series: {
        seconds: [0, 10],
        heap: [1, 2],
      },
    },
  ),
]);

const picture = drawSuite(record);

test("tables and charts that are made from the file are those of the run", async () => {
  const again = fromJson(await toJson(record));
  expect(drawSuite(again)).toBe(picture);
  expect(toMarkdown([again])).toBe(toMarkdown([record]));
});

test("a figure list that fits has one line of the file", async () => {
  expect(await toJson(record)).toMatch(/^ +"median": \[.+\],$/m);
});

test("a file without fields of a record is rejected, and the message names these fields", () => {
  const { title, panels, ...rest } = record;
  expect([title, panels]).toEqual([suite.title, suite.panels]);
  expect(() => fromJson(JSON.stringify(rest))).toThrow(
    new TypeError("Expected the record of a suite, got a file without title, panels"),
  );
});

test("a chart names all contestants and cases, its panels with units, and the figures", () => {
  for (const words of [
    "raw",
    "redlock",
    "holdfast",
    "@verrou/core",
    "hold 1 ms",
    "acquisitions/s",
    "wait ms",
  ]) {
    expect(picture).toContain(`>${words}</text>`);
  }
  // The median of both rounds, and the largest wait.
  expect(picture).toContain(">200</text>");
  expect(picture).toContain(">3</text>");
});

test("a bar is proportional to its value, and its line goes from the smallest to the largest round", () => {
  const widths = Array.from(
    picture.matchAll(/<rect class="(floor|own)" x="[\d.]+" y="[\d.]+" width="([\d.]+)" height="13.0"/g),
  );
  const [raw, own] = widths.map(([, , width]) => Number(width));
  expect((own ?? 0) / (raw ?? 1)).toBeCloseTo(2, 2);
  const [, from, to] = /<line class="range" x1="([\d.]+)" y1="[\d.]+" x2="([\d.]+)"/.exec(picture) ?? [];
  expect((Number(to) - Number(from)) / (raw ?? 1)).toBeCloseTo(1, 2);
});

test("a contestant without figures has a dash in every case", () => {
  const dashes = picture.match(/>–<\/text>/g) ?? [];
  // @verrou/core in two panels of the first case, all contestants in two of the second. A peer with a p50 has a dot.
  expect(dashes).toHaveLength(2 + 4 * 2);
});

test("a chart is well-formed, contains only finite numbers, and follows the reader's colour mode", () => {
  expect(picture).toContain("One &lt;hot&gt; key");
  expect(picture).not.toMatch(/NaN|undefined|Infinity/);
  expect(picture).toContain("prefers-color-scheme: dark");
  const opened = picture.match(/<(?:svg|text|style)\b/g) ?? [];
  const closed = picture.match(/<\/(?:svg|text|style)>/g) ?? [];
  expect(closed).toHaveLength(opened.length);
});
