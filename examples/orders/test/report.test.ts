import { describe, expect, test } from "vitest";

import { isSound, percentile, summarize, table, verdict, type Summary } from "../src/report.ts";

describe("the report", () => {
  const sound: Summary = {
    orders: 2_000,
    accepted: 4_540,
    oversold: 0,
    oversoldArticles: 0,
    articles: 20,
    unaccounted: 0,
    ordersPerSecond: 4_321.4,
    waitsMs: Array.from({ length: 200 }, (_, i) => i + 1),
    handovers: 1_234,
  };
  const racy: Summary = {
    ...sound,
    oversold: 1_514,
    oversoldArticles: 20,
    unaccounted: 3_412,
    waitsMs: [],
    handovers: 0,
  };

  test("the table shows both runs side by side", () => {
    expect(table(racy, sound)).toBe(
      [
        "                        without locks   with locks",
        "--------------------------------------------------",
        "orders                          2 000        2 000",
        "units accepted                  4 540        4 540",
        "units oversold                  1 514            0",
        "articles oversold            20 of 20      0 of 20",
        "units unaccounted for           3 412            0",
        "orders/s                        4 321        4 321",
        "wait p50                            -     100.0 ms",
        "wait p99                            -     198.0 ms",
        "hand-overs                          -        1 234",
        "",
      ].join("\n"),
    );
  });

  test("one oversold or unaccounted unit makes a run unsound", () => {
    expect(isSound(sound)).toBe(true);
    expect(isSound({ ...sound, oversold: 1 })).toBe(false);
    expect(isSound({ ...sound, unaccounted: 1 })).toBe(false);
    expect(verdict(racy, { ...sound, oversold: 1 })).toMatch(/^WRONG: with locks 1 units were oversold/);
    expect(verdict(racy, sound)).toMatch(/^Without locks 1 514 units were oversold .* With locks none\.$/);
  });

  test("a summary counts by article, so that stock of one article does not hide an excess of another", () => {
    const sold = (article: string, units: number) => ({ order: 1, article, units });
    const tallies = [
      { handled: 3, accepted: [sold("saw", 4), sold("vice", 1)], waitsMs: [] },
      { handled: 1, accepted: [sold("saw", 3)], waitsMs: [] },
    ];
    const initial = new Map([["saw", 5], ["vice", 9]]); // prettier-ignore
    const remaining = new Map([["saw", 1], ["vice", 8]]); // prettier-ignore
    expect(summarize({ tallies, handovers: 0, seconds: 2 }, initial, remaining)).toMatchObject({
      orders: 4,
      accepted: 8,
      oversold: 2,
      oversoldArticles: 1,
      unaccounted: 3,
      ordersPerSecond: 2,
    });
  });

  test("a percentile is a measured value", () => {
    expect([percentile([3, 1, 2], 50), percentile([3, 1, 2], 99), percentile([], 50)]).toEqual([
      2,
      3,
      undefined,
    ]);
  });
});
