import { expect, test } from "vitest";

import { runContention, singleBroadcastShare, type ContentionSetup } from "../../sim/run/rivals.ts";

const contests: readonly (readonly [string, number, ContentionSetup])[] = [
  ["that wait", 0.95, { how: "acquire", callers: 1, handover: false, acquisitions: 40 }],
  [
    "that wait with callers behind them",
    0.95,
    { how: "acquire", callers: 4, handover: true, acquisitions: 20 },
  ],
  ["that try again and again", 0.88, { how: "try", callers: 1, handover: false, acquisitions: 20 }],
];

test.each(contests)(
  "of twenty rivals %s so many have their number after one round: %f",
  async (_, share, contest) => {
    const outcome = await runContention(contest);
    expect(outcome.leases).toBe(20 * contest.callers * contest.acquisitions);
    expect(singleBroadcastShare(outcome)).toBeGreaterThanOrEqual(share);
  },
  60_000,
);
