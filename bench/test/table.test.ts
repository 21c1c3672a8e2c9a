import { expect, test } from "vitest";

import { table } from "../src/report/table.ts";

test("columns are aligned: text to the left, numbers to the right", () => {
  const text = table(
    ["contestant", "rate"],
    [
      ["raw", "12,345"],
      ["holdfast", "9"],
    ],
  );
  expect(text.split("\n")).toEqual([
    "| contestant |   rate |",
    "| ---------- | -----: |",
    "| raw        | 12,345 |",
    "| holdfast   |      9 |",
  ]);
});

test("a column is wide enough for the rule of Markdown", () => {
  expect(table(["a", "b"], []).split("\n")).toEqual(["| a   |   b |", "| --- | --: |"]);
});

test("a missing cell is left empty", () => {
  expect(table(["a", "b"], [["x"]]).split("\n")[2]).toBe("| x   |     |");
});
