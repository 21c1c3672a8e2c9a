import { describe, expect, test } from "vitest";

import type { ClientRecord, CoordinatorRecord, Failover, LatchRequest } from "../../chaos/judge/history.ts";
import { judge } from "../../chaos/judge/judge.ts";
import { endOfRun, granted, historyFixture, released, type PlantedHistory } from "./planted-history.ts";

// Failovers: the checker judges only the rules that hold across a failover, and counts the other conflicts.

const { folder, plant, violated } = historyFixture();

/** Another server is the primary from 1 000 on; the former primary reports that role until 1 500. The largest TTL is 4 000. */
const failover: Failover = {
  at: 1_050,
  since: 1_000,
  until: 1_500,
  newPrimary: 7_000,
  isPromotion: true,
  keys: ["hot"],
};
const conductor: readonly CoordinatorRecord[] = [{ e: "failover", ...failover }, endOfRun];

/** The first client holds the lock until 3 000, and the second client is granted the lock before that. */
function overlappingGrants(grantedAt: number, token: number, key = "hot"): PlantedHistory {
  const until = 3_000;
  return {
    engine: "cluster",
    coordinator: conductor,
    clients: {
      "client-0.1": [
        ...granted(1, 900, 10, { key, until }),
        { e: "lost", at: 2_900, requestId: 1, reason: "expired" },
      ],
      "client-1.2": [...granted(1, grantedAt, token, { key }), ...released(1, grantedAt + 20)],
    },
  };
}

describe("exclusion", () => {
  test("is not judged across a failover: the conflict is counted", async () => {
    await plant(overlappingGrants(1_200, 11));
    const { violations, figures, summary } = await judge(folder());
    expect(violations).toEqual([]);
    expect(figures.conflictsAcrossFailovers).toBe(1);
    expect(figures.failovers).toEqual([{ at: 1_050, withoutGrantMs: 300, twoForMs: 450 }]);
    expect(summary).toContain("1 failovers with 1 conflicts across them: nothing violated");
  });

  test("is judged before a failover", async () => {
    expect(await violated(overlappingGrants(999, 11))).toEqual(["exclusion"]);
  });

  test("is judged for a key of another shard", async () => {
    expect(await violated(overlappingGrants(1_200, 11, "lukewarm-1"))).toEqual(["exclusion"]);
  });

  test("is judged for two grants after the failover", async () => {
    const found = await violated({
      engine: "cluster",
      coordinator: conductor,
      clients: {
        "client-0.1": [...granted(1, 1_501, 10), ...released(1, 1_600)],
        "client-1.2": [...granted(1, 1_502, 11), ...released(1, 1_520)],
      },
    });
    expect(found).toEqual(["exclusion"]);
  });

  test("is judged once a grant that the failover lost has expired", async () => {
    const found = await violated({
      engine: "cluster",
      coordinator: conductor,
      clients: {
        "client-0.1": [...granted(1, 900, 10, { until: 6_000 }), ...released(1, 5_900)],
        "client-1.2": [...granted(1, 5_501, 11), ...released(1, 5_520)],
      },
    });
    expect(found).toEqual(["exclusion"]);
  });
});

describe("tokens", () => {
  test("rise across a failover", async () => {
    const found = await violated({
      engine: "cluster",
      coordinator: conductor,
      clients: {
        "client-0.1": [...granted(1, 900, 10), ...released(1, 950)],
        "client-1.2": [...granted(1, 1_200, 9), ...released(1, 1_220)],
      },
    });
    expect(found).toContain("tokens");
  });

  test("of a grant that the failover lost are handed over in memory until the process notices the loss", async () => {
    const handed = [
      ...granted(1, 900, 1_000, { until: 3_000 }),
      ...released(1, 1_300, 3_000),
      ...granted(2, 1_301, 1_001, { until: 3_000 }),
      ...released(2, 1_310, 3_000),
    ];
    const other = [...granted(1, 1_200, 2_000), ...released(1, 1_250)];
    const planted = { engine: "cluster", coordinator: conductor } as const;
    expect(await violated({ ...planted, clients: { "client-0.1": handed, "client-1.2": other } })).toEqual(
      [],
    );
  });

  test("of a new grant are larger than the token of a grant that the failover lost", async () => {
    const found = await violated({
      engine: "cluster",
      coordinator: conductor,
      clients: {
        "client-0.1": [
          ...granted(1, 900, 1_000),
          ...released(1, 950),
          ...granted(2, 1_301, 1_900),
          ...released(2, 1_310),
        ],
        "client-1.2": [...granted(1, 1_200, 2_000), ...released(1, 1_250)],
      },
    });
    expect(found).toContain("tokens");
  });
});

describe("attempts", () => {
  const repeated = (token: number, moved: number): Readonly<Record<string, readonly ClientRecord[]>> => ({
    "client-0.1": [
      ...granted(1, 900 + moved, 10, { kind: "attempt", attemptId: "a", until: 3_000 }),
      ...granted(2, 1_200 + moved, token, { kind: "attempt", attemptId: "a" }),
      ...released(2, 1_250 + moved),
      { e: "lost", at: 2_900, requestId: 1, reason: "expired" },
    ],
  });

  test("may get a new grant across a failover", async () => {
    expect(await violated({ engine: "cluster", coordinator: conductor, clients: repeated(11, 0) })).toEqual(
      [],
    );
  });

  test("share one grant after the failover", async () => {
    const found = await violated({ engine: "cluster", coordinator: conductor, clients: repeated(11, 700) });
    expect(found).toContain("attempts");
  });
});

test.each([
  ["may get a new grant after an operator breaks the lock", 299, []],
  ["shares the grant until an operator breaks the lock", 301, ["attempts", "exclusion"]],
])("an attempt %s", async (_what, breaking, rules) => {
  const attempt = { kind: "attempt", attemptId: "a" } as const;
  const lost: ClientRecord = { e: "lost", at: 400, requestId: 1, reason: "broken" };
  const found = await violated({
    clients: {
      "client-0.1": [
        ...granted(1, 100, 10, { ...attempt, until: 1_000 }),
        ...granted(2, 300, 200, attempt),
        ...released(2, 320),
        lost,
      ],
      "client-2.3": [{ e: "breaking", at: breaking, key: "hot", token: "10" }],
    },
  });
  expect(found.toSorted()).toEqual(rules);
});

test("only a failover may lose a latch", async () => {
  const about: LatchRequest = {
    key: "latch-1",
    handle: 1,
    count: 3,
    ttlMs: 30_000,
    attemptId: "a",
    waitMs: 0,
    isProbe: false,
  };
  const counted = (call: number, at: number): ClientRecord[] => [
    { e: "latch", at, call, ...about, attemptId: `attempt ${call}` },
    { e: "latch-reply", at: at + 1, call, remaining: 2 },
  ];
  const clients = { "client-0.1": [...counted(1, 900), ...counted(2, 1_200)] };
  expect(await violated({ engine: "cluster", coordinator: conductor, clients })).toEqual([]);
});

test("a latch that starts its count again without a failover is a violation", async () => {
  const about = { key: "latch-1", handle: 1, count: 3, ttlMs: 30_000, waitMs: 0, isProbe: false } as const;
  const found = await violated({
    engine: "cluster",
    clients: {
      "client-0.1": [
        { e: "latch", at: 900, call: 1, ...about, attemptId: "attempt 1" },
        { e: "latch-reply", at: 901, call: 1, remaining: 2 },
        { e: "latch", at: 1_200, call: 2, ...about, attemptId: "attempt 2" },
        { e: "latch-reply", at: 1_201, call: 2, remaining: 2 },
      ],
    },
  });
  expect(found).toEqual(["count"]);
});
