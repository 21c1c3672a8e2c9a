import { expect, test } from "vitest";

import type { ClientRecord } from "../../chaos/judge/history.ts";
import type { EngineName } from "../../chaos/plan/plan.ts";
import { granted, historyFixture, released } from "./planted-history.ts";

const { finds, violated } = historyFixture();

test.each<EngineName>(["redis", "redlock"])(
  "a repeated attempt gets the same token, and no second grant (%s)",
  async (engine) => {
    const found = await violated({
      engine,
      clients: {
        "client-0.1": [
          ...granted(1, 100, 10, { kind: "attempt", attemptId: "a" }),
          ...granted(2, 150, 11, { kind: "attempt", attemptId: "a" }),
          ...released(1, 200),
          { e: "lost", at: 201, requestId: 2, reason: "released" },
        ],
      },
    });
    expect(found.toSorted()).toEqual(["attempts", "exclusion"]);
  },
);

test("a repeat gets a new grant if the first grant has expired, even if the first lease is released afterwards", async () => {
  const clients = {
    "client-0.1": [
      ...granted(1, 100, 10, { kind: "attempt", attemptId: "a" }),
      { e: "lost", at: 200, requestId: 1, reason: "expired" },
      ...granted(2, 300, 12, { kind: "attempt", attemptId: "a", requestedAt: 110 }),
      { e: "releasing", at: 310, requestId: 1, validUntil: 1_000 },
      { e: "released", at: 311, requestId: 1, answer: "false" },
      ...released(2, 320),
    ],
    "client-2.3": [...granted(1, 250, 11), ...released(1, 260)],
  } satisfies Readonly<Record<string, readonly ClientRecord[]>>;
  expect(await violated({ engine: "redis", clients })).toEqual([]);
});

test("attempts with one name in two processes exclude each other", async () => {
  const attempt = { kind: "attempt", attemptId: "a" } as const;
  const clients = {
    "client-0.1": [...granted(1, 100, 10, attempt), ...released(1, 200)],
    "client-1.2": [...granted(1, 150, 11, attempt), ...released(1, 160)],
  };
  await finds(["exclusion"], clients);
});

test.each<[EngineName, readonly string[]]>([
  ["redis", []],
  ["etcd", ["exclusion"]],
])(
  "a break also ends later grants only if they may be hand-overs in memory (%s)",
  async (engine, expected) => {
    const clients: Readonly<Record<string, readonly ClientRecord[]>> = {
      "client-0.1": [
        ...granted(1, 100, 10, { until: 300 }),
        { e: "lost", at: 210, requestId: 1, reason: "broken" },
        ...granted(2, 400, 12),
        ...released(2, 500),
      ],
      "client-1.2": [
        { e: "breaking", at: 200, key: "hot", token: "10" },
        ...granted(1, 450, 13),
        ...released(1, 460),
      ],
    };
    expect(await violated({ engine, clients })).toEqual(expected);
  },
);

test("the last release of an attempt's leases ends their grant", async () => {
  const attempt = { kind: "attempt", attemptId: "a" } as const;
  const clients = {
    "client-0.1": [
      ...granted(1, 100, 10, attempt),
      ...granted(2, 110, 10, attempt),
      ...released(1, 120),
      ...released(2, 200),
    ],
    "client-1.2": [...granted(1, 150, 11), ...released(1, 160)],
  };
  await finds(["exclusion"], clients);
});
