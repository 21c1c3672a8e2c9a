import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { describe, expect, test } from "vitest";

import type { ClientRecord, CoordinatorRecord } from "../../chaos/judge/history.ts";
import { judge, violationsOf } from "../../chaos/judge/judge.ts";
import type { EngineName } from "../../chaos/plan/plan.ts";
import { readHistory } from "../../chaos/judge/read-history.ts";
import { endOfRun, granted, opened, historyFixture, released } from "./planted-history.ts";

// Histories with something wrong in them, one for each rule: the checker has to find it, and nothing else.

const { folder, plant, violated } = historyFixture();

test("finds nothing where one lease follows another", async () => {
  const found = await violated({
    clients: {
      "client-0.1": [...granted(1, 100, 10), ...released(1, 200)],
      "client-1.2": [...granted(1, 201, 11), { e: "lost", at: 1_201, requestId: 1, reason: "expired" }],
      "client-2.3": [...granted(1, 1_202, 12), { e: "transferred", at: 1_300, requestId: 1 }],
      "client-3.4": [...granted(1, 1_301, 12, { kind: "adopt" }), ...released(1, 1_400)],
    },
    resource: [
      { e: "read", at: 110, key: "hot", token: "10", from: "client-0.1", accepted: true },
      {
        e: "write",
        at: 120,
        key: "hot",
        token: "10",
        from: "client-0.1",
        accepted: true,
        checked: [0, 1],
        unchecked: [0, 1],
      },
    ],
  });
  expect(found).toEqual([]);
});

describe("exclusion", () => {
  test("is violated by a grant while another's lease is valid", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10), ...released(1, 200)],
        "client-1.2": [...granted(1, 199.999, 11), ...released(1, 300)],
      },
    });
    expect(found).toEqual(["exclusion"]);
  });

  test("counts validity that a renewal has moved", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [
          ...granted(1, 100, 10, { until: 600 }),
          { e: "valid", at: 400, requestId: 1, validUntil: 900 },
          { e: "lost", at: 950, requestId: 1, reason: "expired" },
        ],
        "client-1.2": [...granted(1, 800, 11), ...released(1, 820)],
      },
    });
    expect(found).toEqual(["exclusion"]);
  });

  test("counts a lease whose process was killed until its validity ends", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10, { until: 600 })],
        "client-1.2": [...granted(1, 500, 11), ...released(1, 520)],
      },
      coordinator: [{ e: "killed", at: 300, process: "client-0.1" }, endOfRun],
    });
    expect(found).toContain("exclusion");
  });

  test("is not judged from the moment on that an operator breaks the lock", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10), { e: "lost", at: 400, requestId: 1, reason: "broken" }],
        "client-1.2": [...granted(1, 300, 11), ...released(1, 320)],
        "client-2.3": [{ e: "breaking", at: 299, key: "hot", token: "10" }],
      },
    });
    expect(found).toEqual([]);
  });

  test("is judged until that moment", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10), { e: "lost", at: 400, requestId: 1, reason: "broken" }],
        "client-1.2": [...granted(1, 298, 11), ...released(1, 320)],
        "client-2.3": [{ e: "breaking", at: 299, key: "hot", token: "10" }],
      },
    });
    expect(found).toEqual(["exclusion"]);
  });
});

describe("tokens", () => {
  test("have to rise in the order of the grants", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10, { askedAt: 90 }), ...released(1, 200)],
        "client-1.2": [...granted(1, 300, 9, { askedAt: 95 }), ...released(1, 400)],
      },
    });
    expect(found).toEqual(["tokens"]);
  });

  test("have to be larger than all that were granted before the ask, also of a lease that was never valid", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10), ...released(1, 200)],
        "client-1.2": [...granted(1, 2_000, 9, { until: 1_900 }), ...released(1, 2_001, 1_900)],
      },
    });
    expect(found).toEqual(["tokens"]);
  });

  test("have to be unique", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10), ...released(1, 200)],
        "client-1.2": [...granted(1, 300, 10), ...released(1, 400)],
      },
    });
    expect(found).toContain("tokens");
  });
});

test.each<EngineName>(["redis", "redlock"])(
  "a repeated attempt has to get the same token, and nothing beside it (%s)",
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

test("a repeat has a grant of its own where the first was over by itself, though that is released behind it", async () => {
  const clients = {
    "client-0.1": [
      ...granted(1, 100, 10, { kind: "attempt", attemptId: "a" }),
      { e: "lost", at: 200, requestId: 1, reason: "expired" },
      ...granted(2, 300, 12, { kind: "attempt", attemptId: "a", askedAt: 110 }),
      { e: "releasing", at: 310, requestId: 1, validUntil: 1_000 },
      { e: "released", at: 311, requestId: 1, answer: "false" },
      ...released(2, 320),
    ],
    "client-2.3": [...granted(1, 250, 11), ...released(1, 260)],
  } satisfies Readonly<Record<string, readonly ClientRecord[]>>;
  expect(await violated({ engine: "redis", clients })).toEqual([]);
});

test("an attempt of the same name in another process is a stranger", async () => {
  const attempt = { kind: "attempt", attemptId: "a" } as const;
  const clients = {
    "client-0.1": [...granted(1, 100, 10, attempt), ...released(1, 200)],
    "client-1.2": [...granted(1, 150, 11, attempt), ...released(1, 160)],
  };
  expect(await violated({ clients })).toEqual(["exclusion"]);
});

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
  expect(await violated({ clients })).toEqual(["exclusion"]);
});

describe("the resource", () => {
  const visit = { key: "hot", from: "client-0.1", accepted: true } as const;

  test("must not accept a token after a larger one", async () => {
    const found = await violated({
      resource: [
        { e: "read", at: 100, token: "11", ...visit },
        { e: "read", at: 101, token: "10", ...visit },
      ],
    });
    expect(found).toEqual(["resource"]);
  });

  test("must not lose a write of the counter that checks tokens", async () => {
    const found = await violated({
      resource: [
        { e: "write", at: 100, token: "10", ...visit, checked: [0, 1], unchecked: [0, 1] },
        { e: "write", at: 101, token: "11", ...visit, checked: [1, 1], unchecked: [1, 1] },
      ],
    });
    expect(found).toEqual(["resource", "resource"]);
  });

  test("may lose one of the counter that does not", async () => {
    const found = await violated({
      resource: [
        { e: "write", at: 100, token: "10", ...visit, checked: [0, 1], unchecked: [0, 1] },
        { e: "write", at: 101, token: "11", ...visit, checked: [1, 2], unchecked: [1, 1] },
      ],
    });
    expect(found).toEqual([]);
  });
});

describe("waits", () => {
  const asked: ClientRecord = {
    e: "asked",
    at: 100,
    requestId: 1,
    key: "hot",
    kind: "acquire",
    waitMs: 1_000,
  };

  test("an ask has to be settled", async () => {
    expect(await violated({ clients: { "client-0.1": [asked] } })).toEqual(["waits"]);
  });

  test("an ask has to be settled in time", async () => {
    const late: ClientRecord = { e: "refused", at: 7_000, requestId: 1, code: "wait-timeout" };
    expect(await violated({ clients: { "client-0.1": [asked, late] } })).toEqual(["waits"]);
  });

  test("an ask may be late by the time when its process could not run", async () => {
    const records: ClientRecord[] = [
      asked,
      { e: "stalled", at: 7_000, since: 2_000 },
      { e: "refused", at: 7_001, requestId: 1, code: "wait-timeout" },
    ];
    expect(await violated({ clients: { "client-0.1": records } })).toEqual([]);
  });

  test("an ask of a process that was killed need not be settled", async () => {
    const found = await violated({
      clients: { "client-0.1": [asked] },
      coordinator: [{ e: "killed", at: 300, process: "client-0.1" }, endOfRun],
    });
    expect(found).toEqual([]);
  });

  test("a release has to be settled", async () => {
    const records: ClientRecord[] = [
      ...granted(1, 100, 10),
      { e: "releasing", at: 200, requestId: 1, validUntil: 900 },
    ];
    expect(await violated({ clients: { "client-0.1": records } })).toEqual(["waits"]);
  });
});

describe("a loss", () => {
  test("has to be told", async () => {
    const records: ClientRecord[] = [
      ...granted(1, 100, 10),
      { e: "unreported", at: 1_150, requestId: 1, validUntil: 1_100 },
      { e: "lost", at: 1_160, requestId: 1, reason: "expired" },
    ];
    expect(await violated({ clients: { "client-0.1": records } })).toEqual(["loss-notice"]);
  });

  test("must not be passed over", async () => {
    expect(await violated({ clients: { "client-0.1": granted(1, 100, 10) } })).toEqual(["loss-notice"]);
  });
});

describe("in peace", () => {
  test("everybody has to get the lock", async () => {
    const records: ClientRecord[] = [
      { e: "asked", at: 100, requestId: 1, key: "hot", kind: "probe", waitMs: 20_000 },
      { e: "refused", at: 20_100, requestId: 1, code: "wait-timeout" },
    ];
    expect(await violated({ clients: { "client-0.1": records } })).toEqual(["quiet-period"]);
  });

  test("every process has to come to rest", async () => {
    const restless: CoordinatorRecord = { e: "not-quiescent", at: 100, round: 1, process: "client-0.1" };
    expect(await violated({ coordinator: [restless, endOfRun] })).toEqual(["quiet-period"]);
  });

  test("nothing may be left", async () => {
    const left: CoordinatorRecord = { e: "residue", at: 100, round: 1, node: 0, keys: ["lock:hot (-1 ms)"] };
    expect(await violated({ coordinator: [left, endOfRun] })).toEqual(["residue"]);
  });

  test("the run has to come to its end", async () => {
    expect(await violated({ coordinator: [{ e: "phase", at: 1, phase: "storm", round: 1 }] })).toEqual([
      "quiet-period",
    ]);
  });
});

test("memory must not grow", async () => {
  const records = Array.from({ length: 30 }, (_, index): ClientRecord => ({
    e: "memory",
    at: index * 1_000,
    bytes: (20 + index) * 1024 * 1024,
  }));
  expect(await violated({ clients: { "client-0.1": records } })).toEqual(["memory"]);
});

describe("a process", () => {
  test("must not have a rejection that nobody handles", async () => {
    const unheard: ClientRecord = { e: "unhandled-error", at: 100, error: "unhandled rejection: Error" };
    expect(await violated({ clients: { "client-0.1": [unheard] } })).toEqual(["unhandled-error"]);
  });

  test("must not end by itself", async () => {
    const crashed: CoordinatorRecord = { e: "crashed", at: 100, process: "client-0.1", how: "code 1" };
    expect(await violated({ clients: { "client-0.1": [] }, coordinator: [crashed, endOfRun] })).toEqual([
      "unhandled-error",
    ]);
  });

  test("must not be told an unknown error", async () => {
    const records: ClientRecord[] = [
      { e: "asked", at: 100, requestId: 1, key: "hot", kind: "acquire", waitMs: 1_000 },
      { e: "refused", at: 200, requestId: 1, code: "strange: TypeError" },
    ];
    expect(await violated({ clients: { "client-0.1": records } })).toEqual(["unhandled-error"]);
  });
});

test("a line that a kill cut off is passed over, and one in the middle is not", async () => {
  await plant({ clients: { "client-0.1": [] } });
  const path = join(folder(), "history", "client-1.2.ndjson");
  await writeFile(path, `${JSON.stringify(opened)}\n{"e":"ask`);
  expect(violationsOf(await readHistory(folder()))).toEqual([]);
  await writeFile(path, `{"e":"ask\n${JSON.stringify(opened)}\n`);
  await expect(readHistory(folder())).rejects.toThrow("client-1.2.ndjson");
});

test("a report and a timeline tell of a violation", async () => {
  await plant({
    clients: {
      "client-0.1": [...granted(1, 100, 10), ...released(1, 200)],
      "client-1.2": [...granted(1, 150, 11), ...released(1, 300)],
    },
  });
  const { summary, violations, figures } = await judge(folder());
  expect(violations).toHaveLength(1);
  expect(figures).toMatchObject({ grants: 2, losses: 0 });
  expect(summary).toContain("client-1.2#1 (11) while client-0.1#1 (10) was valid for 50.000 ms more");
  expect(await readFile(join(folder(), "report.md"), "utf8")).toContain("**violated: 1**");
  const timeline = await readFile(join(folder(), "timeline-hot.svg"), "utf8");
  expect(timeline).toContain("exclusion: client-1.2#1 (11)");
});
