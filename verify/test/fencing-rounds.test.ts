import { expect, test } from "vitest";

import { contend, shareOfOneRound, type Contest } from "../sim/rivals.ts";

const contests: readonly (readonly [string, Contest])[] = [
  ["that wait", { how: "acquire", callers: 1, handover: false, turns: 40 }],
  ["that wait with callers behind them", { how: "acquire", callers: 4, handover: true, turns: 20 }],
];

test.each(contests)(
  "of twenty rivals %s nineteen in twenty have their number after one round",
  async (_, contest) => {
    const outcome = await contend(contest);
    expect(outcome.leases).toBe(20 * contest.callers * contest.turns);
    expect(shareOfOneRound(outcome)).toBeGreaterThanOrEqual(0.95);
  },
  60_000,
);
