import { expect, test } from "vitest";

import { contend, shareOfOneRound, type Contest } from "../../sim/run/rivals.ts";

const contests: readonly (readonly [string, number, Contest])[] = [
  ["that wait", 0.95, { how: "acquire", callers: 1, handover: false, turns: 40 }],
  ["that wait with callers behind them", 0.95, { how: "acquire", callers: 4, handover: true, turns: 20 }],
  ["that try again and again", 0.88, { how: "try", callers: 1, handover: false, turns: 20 }],
];

test.each(contests)(
  "of twenty rivals %s so many have their number after one round: %f",
  async (_, share, contest) => {
    const outcome = await contend(contest);
    expect(outcome.leases).toBe(20 * contest.callers * contest.turns);
    expect(shareOfOneRound(outcome)).toBeGreaterThanOrEqual(share);
  },
  60_000,
);
