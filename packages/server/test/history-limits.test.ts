import { expect, test } from "vitest";

import { HoldHistory, newest, type Hold } from "../src/observation/history.ts";

function ended(key: string, index: number, end: Hold["end"], ageMs = 0): Hold {
  const until = Date.now() - ageMs;
  return { key, owner: "api", fencingToken: String(index), since: until - 10, until, ...(end && { end }) };
}

test("a break of the last hour stays when many later holds of its key or of other keys have ended", () => {
  const history = new HoldHistory();
  history.add(ended("busy", 1, "broken", 7_200_000));
  history.add(ended("busy", 2, "broken", 60_000));
  history.add(ended("other", 3, "broken"));
  for (let index = 10; index < 210; index += 1) history.add(ended("busy", index, "released"));
  for (let key = 0; key < 1_200; key += 1) history.add(ended(`key:${key}`, key, "released"));
  const tokens = (holds: readonly Hold[]): unknown[] =>
    holds.flatMap(({ end, fencingToken }) => (end === "broken" ? [fencingToken] : []));
  expect(tokens(history.of("busy"))).toEqual(["2"]);
  const last = history.last(50, () => true);
  expect([last.length, last[0]?.key, tokens(last)]).toEqual([50, "key:1199", ["3", "2"]]);
});

test("breaks take at most half of the shown places", () => {
  const holds = Array.from({ length: 90 }, (_, index) =>
    ended("k", index, index < 30 ? "released" : "broken"),
  );
  const shown = newest(holds, 50);
  expect(shown.map(({ fencingToken }) => Number(fencingToken))).toEqual([
    ...Array.from({ length: 25 }, (_, index) => index),
    ...Array.from({ length: 25 }, (_, index) => 30 + index),
  ]);
});
