import { expect, test } from "vitest";

import { runContention, singleBroadcastShare, type ContentionSetup } from "../../sim/run/rivals.ts";

const contests: readonly (readonly [string, number, ContentionSetup])[] = [
  ["waiting clients", 0.95, { how: "acquire", callers: 1, handover: false, acquisitions: 40 }],
  [
    "waiting clients with queued callers",
    0.95,
    { how: "acquire", callers: 4, handover: true, acquisitions: 20 },
  ],
  ["clients that retry", 0.88, { how: "try", callers: 1, handover: false, acquisitions: 20 }],
];

test.each(contests)(
  "of twenty %s at least this share has its number after one round: %f",
  async (_, share, contest) => {
    const outcome = await runContention(contest);
    expect(outcome.leases).toBe(20 * contest.callers * contest.acquisitions);
    expect(singleBroadcastShare(outcome)).toBeGreaterThanOrEqual(share);
  },
);
