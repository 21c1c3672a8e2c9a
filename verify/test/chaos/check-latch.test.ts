import { describe, expect, test } from "vitest";

import type { ClientRecord, CoordinatorRecord, LatchRequest } from "../../chaos/judge/history.ts";
import { endOfRun, historyFixture } from "./planted-history.ts";

// Histories of latches with a violation, and beside each a similar history without a violation.

const { finds, violated } = historyFixture();

/** A latch of two, with a TTL of 30 s. */
const request = { key: "latch-7", handle: 1, count: 2, ttlMs: 30_000, waitMs: 0, isProbe: false } as const;
type RequestChanges = Partial<LatchRequest>;

/** A latch of two, with a TTL of one minute. */
const longTtlMs = { ttlMs: 60_000 };

function requestRecord(call: number, at: number, change: RequestChanges = {}): ClientRecord {
  return { e: "latch", at, call, ...request, ...change };
}

function counts(
  call: number,
  at: number,
  attemptId: string,
  remaining: number,
  change: RequestChanges = {},
): ClientRecord[] {
  return [
    requestRecord(call, at, { ...change, attemptId }),
    { e: "latch-reply", at: at + 2, call, remaining },
  ];
}

function waits(call: number, from: number, to: number, change: RequestChanges = {}): ClientRecord[] {
  return [
    requestRecord(call, from, { waitMs: 20_000, ...change }),
    { e: "latch-reply", at: to, call, remaining: 0 },
  ];
}

function refused(
  call: number,
  from: number,
  to: number,
  code: string,
  change: RequestChanges = {},
): ClientRecord[] {
  return [
    requestRecord(call, from, { waitMs: 20_000, ...change }),
    { e: "latch-refused", at: to, call, code },
  ];
}

const inQuietPeriod: readonly CoordinatorRecord[] = [
  { e: "phase", at: 0, phase: "storm", round: 1 },
  { e: "phase", at: 20_000, phase: "quiet", round: 1 },
  endOfRun,
];

describe("counts", () => {
  test("an attempt counts once, even if another process repeats it", () =>
    finds([], {
      "client-0.1": [...counts(1, 100, "one", 1), ...counts(2, 200, "one", 1), ...waits(3, 210, 303)],
      "client-1.2": [...counts(1, 150, "one", 1), ...counts(2, 300, "two", 0), ...counts(3, 400, "more", 0)],
    }));

  test.each([0, 1])("an attempt without a reply may count or not: %d remains", async (left) => {
    const found = await violated({
      clients: {
        "client-0.1": refused(1, 100, 150, "engine-unavailable", { attemptId: "one" }),
        "client-1.2": counts(1, 200, "two", left),
      },
    });
    expect(found).toEqual([]);
  });

  test("an attempt must not count twice", () =>
    finds(["count"], {
      "client-0.1": counts(1, 100, "one", 1),
      "client-1.2": counts(1, 150, "one", 0),
    }));

  test("an attempt with a reply counts", () =>
    finds(["count"], {
      "client-0.1": counts(1, 100, "one", 1),
      "client-1.2": counts(1, 150, "two", 1),
    }));
});

describe("waits", () => {
  test("no waiter may return before the last countdown was requested", () =>
    finds(["latch"], {
      "client-0.1": [...counts(1, 100, "one", 1), ...counts(2, 300, "two", 0)],
      "client-1.2": waits(1, 150, 299.999),
    }));

  test.each([
    [29_900, []],
    [30_100, ["latch"]],
  ])("a waiter of an open latch returns soon in a quiet period: at %d ms", async (to, expected) => {
    const found = await violated({
      coordinator: inQuietPeriod,
      clients: {
        "client-0.1": [...counts(1, 9_000, "one", 1, longTtlMs), ...counts(2, 9_300, "two", 0, longTtlMs)],
        "client-1.2": waits(1, 9_150, to, { ...longTtlMs, waitMs: 30_000 }),
      },
    });
    expect(found).toEqual(expected);
  });

  test("a waiter of an open latch that times out in a quiet period is a violation", async () => {
    const found = await violated({
      coordinator: inQuietPeriod,
      clients: {
        "client-0.1": [...counts(1, 9_000, "one", 1, longTtlMs), ...counts(2, 9_300, "two", 0, longTtlMs)],
        "client-1.2": refused(1, 9_150, 39_150, "wait-timeout", { ...longTtlMs, waitMs: 30_000 }),
      },
    });
    expect(found).toEqual(["latch"]);
  });

  test("a probe in a quiet period must return", async () => {
    const probe = { isProbe: true, waitMs: 20_000 };
    const found = await violated({
      clients: { "client-0.1": refused(1, 100, 20_100, "wait-timeout", probe) },
    });
    expect(found).toEqual(["quiet-period"]);
  });

  test("a call must be settled in time", async () => {
    const found = await violated({ clients: { "client-0.1": [requestRecord(1, 100, { waitMs: 500 })] } });
    expect(found).toEqual(["waits"]);
  });
});

describe("the end", () => {
  test("a latch must not expire before its TTL", () =>
    finds(["latch"], {
      "client-0.1": [
        ...counts(1, 100, "one", 1),
        ...refused(2, 5_000, 5_002, "latch-expired", { attemptId: "two" }),
      ],
    }));

  const brief = { key: "latch-brief", ttlMs: 500 };

  test("an object of an expired latch reports the expiry, and a new object gets the next latch", () =>
    finds([], {
      "client-0.1": [
        ...counts(1, 100, "one", 1, brief),
        ...refused(2, 5_000, 5_002, "latch-expired", { ...brief, attemptId: "two" }),
        ...counts(3, 5_010, "two", 1, { ...brief, handle: 2 }),
      ],
    }));

  test("an object of an expired latch must not count the next latch down", () =>
    finds(["latch"], {
      "client-0.1": [...counts(1, 100, "one", 1, brief), ...counts(2, 5_000, "two", 1, brief)],
    }));
});

test("an error code that no latch reports is a violation", async () => {
  const found = await violated({
    clients: { "client-0.1": refused(1, 100, 110, "limit-mismatch", { attemptId: "one" }) },
  });
  expect(found).toEqual(["unhandled-error"]);
});
