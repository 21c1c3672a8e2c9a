import { describe, expect, test } from "vitest";

import type { ClientRecord } from "../../chaos/judge/history.ts";
import { judge } from "../../chaos/judge/judge.ts";
import type { EngineName } from "../../chaos/plan/plan.ts";
import { granted, historyFixture, released } from "./planted-history.ts";

// The same for the other kinds of lock: planted histories that the checker has to find something in, beside one in which it must not.

const { folder, plant, violated } = historyFixture();

const reads = { key: "book-1", lockKind: "read" } as const;
const writes = { key: "book-1", lockKind: "write" } as const;
/** Of a semaphore of four. */
const permits = (count: number) => ({ key: "permits-1", lockKind: "semaphore", permits: count }) as const;

describe("read-write", () => {
  test("readers may be beside each other, and a writer follows them", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10, reads), ...released(1, 200)],
        "client-1.2": [...granted(1, 150, 11, reads), ...released(1, 250)],
        "client-2.3": [...granted(1, 250.5, 12, writes), ...released(1, 300)],
      },
    });
    expect(found).toEqual([]);
  });

  test("a writer must not be granted beside a reader, whoever else reads", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10, reads), ...released(1, 200)],
        "client-1.2": [...granted(1, 150, 11, reads), ...released(1, 160)],
        "client-2.3": [...granted(1, 199.999, 12, writes), ...released(1, 300)],
      },
    });
    expect(found).toEqual(["exclusion"]);
  });

  test("a reader must not be granted beside a writer", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10, writes), ...released(1, 200)],
        "client-1.2": [...granted(1, 199, 11, reads), ...released(1, 300)],
      },
    });
    expect(found).toEqual(["exclusion"]);
  });

  test("two writers exclude each other", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10, writes), ...released(1, 200)],
        "client-1.2": [...granted(1, 199, 11, writes), ...released(1, 300)],
      },
    });
    expect(found).toEqual(["exclusion"]);
  });

  describe("a writer that is downgraded", () => {
    const downgraded = (token: number): ClientRecord[] => [
      ...granted(1, 100, 10, writes),
      { e: "downgraded", at: 150, requestId: 1 },
      ...granted(2, 155, token, { ...reads, kind: "downgrade", askedAt: 150, waitMs: 0 }),
      ...released(2, 300),
    ];

    test("lets readers in, and goes on with its token", async () => {
      const found = await violated({
        clients: {
          "client-0.1": downgraded(10),
          "client-1.2": [...granted(1, 151, 11, reads), ...released(1, 400)],
        },
      });
      expect(found).toEqual([]);
    });

    test("lets no writer in", async () => {
      const found = await violated({
        clients: {
          "client-0.1": downgraded(10),
          "client-1.2": [...granted(1, 151, 11, writes), ...released(1, 400)],
        },
      });
      expect(found).toEqual(["exclusion"]);
    });

    test("lets no reader in before", async () => {
      const found = await violated({
        clients: {
          "client-0.1": downgraded(10),
          "client-1.2": [...granted(1, 149, 11, reads), ...released(1, 400)],
        },
      });
      expect(found).toEqual(["exclusion"]);
    });

    test("must not get another token", async () => {
      expect(await violated({ clients: { "client-0.1": downgraded(11) } })).toContain("tokens");
    });
  });

  describe("tokens", () => {
    test("of a writer have to be larger than those of readers before it", async () => {
      const found = await violated({
        clients: {
          "client-0.1": [...granted(1, 100, 10, reads), ...released(1, 200)],
          "client-1.2": [...granted(1, 201, 9, { ...writes, askedAt: 95 }), ...released(1, 300)],
        },
      });
      expect(found).toEqual(["tokens"]);
    });

    test("of a reader have to be larger than that of a writer before it", async () => {
      const found = await violated({
        clients: {
          "client-0.1": [...granted(1, 100, 10, writes), ...released(1, 200)],
          "client-1.2": [...granted(1, 201, 9, { ...reads, askedAt: 95 }), ...released(1, 300)],
        },
      });
      expect(found).toEqual(["tokens"]);
    });

    test("of a reader have to be larger than that of one that was granted before it asked", async () => {
      const found = await violated({
        clients: {
          "client-0.1": [...granted(1, 100, 10, reads), ...released(1, 200)],
          "client-1.2": [...granted(1, 150, 9, reads), ...released(1, 300)],
        },
      });
      expect(found).toEqual(["tokens"]);
    });

    const alike: Readonly<Record<string, readonly ClientRecord[]>> = {
      "client-0.1": [...granted(1, 100, 10, reads), ...released(1, 200)],
      "client-1.2": [...granted(1, 150, 10, { ...reads, askedAt: 95 }), ...released(1, 300)],
    };

    test.each<[EngineName, readonly string[]]>([
      ["redis", ["tokens"]],
      ["redlock", []],
    ])("of readers that overlap may be the same on a quorum only (%s)", async (engine, expected) => {
      expect(await violated({ engine, clients: alike })).toEqual(expected);
    });

    test("of readers that do not overlap must not be the same", async () => {
      const found = await violated({
        engine: "redlock",
        clients: {
          "client-0.1": [...granted(1, 100, 10, reads), ...released(1, 200)],
          "client-1.2": [...granted(1, 300, 10, reads), ...released(1, 400)],
        },
      });
      expect(found).toContain("tokens");
    });

    test("of a reader must not be that of a writer", async () => {
      const found = await violated({
        engine: "redlock",
        clients: {
          "client-0.1": [...granted(1, 100, 10, writes), ...released(1, 200)],
          "client-1.2": [...granted(1, 201, 10, { ...reads, askedAt: 95 }), ...released(1, 300)],
        },
      });
      expect(found).toEqual(["tokens"]);
    });

    test("of a shared attempt are those of when it was first asked for", async () => {
      const found = await violated({
        clients: {
          "client-0.1": [
            { e: "asked", at: 90, requestId: 1, ...reads, kind: "attempt", waitMs: 5, attemptId: "a" },
            { e: "refused", at: 101, requestId: 1, code: "engine-unavailable" },
            ...granted(2, 160, 10, { ...reads, kind: "attempt", attemptId: "a" }),
            ...released(2, 200),
          ],
          "client-1.2": [...granted(1, 150, 11, reads), ...released(1, 300)],
        },
      });
      expect(found).toEqual([]);
    });
  });

  describe("the resource", () => {
    const visit = { key: "book-1", from: "client-0.1", accepted: true } as const;

    test("may let readers look in any order", async () => {
      const found = await violated({
        resource: [
          { e: "read", at: 100, token: "11", shared: true, ...visit },
          { e: "read", at: 101, token: "10", shared: true, ...visit },
        ],
      });
      expect(found).toEqual([]);
    });

    test("must not accept a reader after a writer with a larger token", async () => {
      const found = await violated({
        resource: [
          { e: "read", at: 100, token: "11", ...visit },
          { e: "read", at: 101, token: "10", shared: true, ...visit },
        ],
      });
      expect(found).toEqual(["resource"]);
    });

    test("must not accept a writer after a reader with a larger token", async () => {
      const found = await violated({
        resource: [
          { e: "read", at: 100, token: "11", shared: true, ...visit },
          { e: "read", at: 101, token: "10", ...visit },
        ],
      });
      expect(found).toEqual(["resource"]);
    });
  });

  test("from a break on the holder that was broken is not judged, and the others are", async () => {
    const broken = (token: string): ClientRecord[] => [{ e: "breaking", at: 149, key: "book-1", token }];
    const clients = (token: string): Readonly<Record<string, readonly ClientRecord[]>> => ({
      "client-0.1": [...granted(1, 100, 10, reads), { e: "lost", at: 400, requestId: 1, reason: "broken" }],
      "client-0.2": [...granted(1, 120, 11, reads), ...released(1, 140)],
      "client-1.3": [...granted(1, 150, 12, writes), ...released(1, 200)],
      "client-2.4": broken(token),
    });
    expect(await violated({ clients: clients("10") })).toEqual([]);
  });

  test("a break of another holder excuses nobody", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [
          ...granted(1, 100, 10, reads),
          ...granted(2, 120, 11, reads),
          ...released(1, 400),
          { e: "lost", at: 160, requestId: 2, reason: "broken" },
        ],
        "client-1.2": [...granted(1, 200, 12, writes), ...released(1, 300)],
        "client-2.3": [{ e: "breaking", at: 149, key: "book-1", token: "11" }],
      },
    });
    expect(found).toEqual(["exclusion"]);
  });
});

describe("a semaphore", () => {
  test("may give out all its permits", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10, permits(3)), ...released(1, 200)],
        "client-1.2": [...granted(1, 150, 11, permits(1)), ...released(1, 250)],
        "client-2.3": [...granted(1, 200, 12, permits(3)), ...released(1, 300)],
      },
    });
    expect(found).toEqual([]);
  });

  test.each([
    ["the next number", 11, []],
    ["no other number", 12, ["tokens"]],
  ])(
    "may be handed on in a process with %s, whatever others are granted meanwhile",
    async (_, token, expected) => {
      const found = await violated({
        clients: {
          "client-0.1": [
            ...granted(1, 100, 10, permits(1)),
            ...released(1, 200),
            ...granted(2, 205, token, { ...permits(1), askedAt: 190 }),
            ...released(2, 300),
          ],
          "client-1.2": [...granted(1, 150, 100, permits(1)), ...released(1, 250)],
        },
      });
      expect(found).toEqual(expected);
    },
  );

  test("must not give out more", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10, permits(3)), ...released(1, 200)],
        "client-1.2": [...granted(1, 150, 11, permits(1)), ...released(1, 250)],
        "client-2.3": [...granted(1, 199.999, 12, permits(1)), ...released(1, 300)],
      },
    });
    expect(found).toEqual(["exclusion"]);
  });

  test("must not give out more to one", async () => {
    const clients = { "client-0.1": [...granted(1, 100, 10, permits(5)), ...released(1, 200)] };
    expect(await violated({ clients })).toEqual(["exclusion"]);
  });

  test("counts permits whose process was killed until their validity ends", async () => {
    const found = await violated({
      clients: {
        "client-0.1": granted(1, 100, 10, { ...permits(4), until: 600 }),
        "client-1.2": [...granted(1, 599, 11, permits(1)), ...released(1, 700)],
      },
      coordinator: [
        { e: "killed", at: 300, process: "client-0.1" },
        { e: "phase", at: 100_000, phase: "end", round: 1 },
      ],
    });
    expect(found).toContain("exclusion");
  });

  test("has rising tokens", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10, permits(1)), ...released(1, 200)],
        "client-1.2": [...granted(1, 150, 9, permits(1)), ...released(1, 250)],
      },
    });
    expect(found).toEqual(["tokens"]);
  });

  test("has unique tokens", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10, permits(1)), ...released(1, 200)],
        "client-1.2": [...granted(1, 150, 10, { ...permits(1), askedAt: 95 }), ...released(1, 250)],
      },
    });
    expect(found).toEqual(["tokens"]);
  });

  test("may have a smaller one for who asked first and heard last", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10, permits(1)), ...released(1, 200)],
        "client-1.2": [...granted(1, 150, 9, { ...permits(1), askedAt: 95 }), ...released(1, 250)],
      },
    });
    expect(found).toEqual([]);
  });
});

describe("several keys", () => {
  const both = {
    key: "set-2",
    keys: ["set-2", "set-1"],
    lockKind: "all",
    tokens: { "set-1": "10", "set-2": "20" },
  } as const;

  test("are held for as long as the lease is valid, each with its token", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10, both), ...released(1, 200)],
        "client-1.2": [
          ...granted(1, 201, 11, { key: "set-1" }),
          ...granted(2, 202, 21, { key: "set-2" }),
          ...released(1, 300),
          ...released(2, 300),
        ],
      },
    });
    expect(found).toEqual([]);
  });

  test.each([
    ["set-1", 11],
    ["set-2", 21],
  ])("are nobody else's meanwhile: %s", async (key, token) => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10, both), ...released(1, 200)],
        "client-1.2": [...granted(1, 199, token, { key }), ...released(1, 300)],
      },
    });
    expect(found).toEqual(["exclusion"]);
  });

  test("are nobody else's part of several", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10, both), ...released(1, 200)],
        "client-1.2": [
          ...granted(1, 199, 21, {
            key: "set-2",
            keys: ["set-3", "set-2"],
            lockKind: "all",
            tokens: { "set-2": "21", "set-3": "1" },
          }),
          ...released(1, 300),
        ],
      },
    });
    expect(found).toEqual(["exclusion"]);
  });

  test("have rising tokens, each key its own", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10, both), ...released(1, 200)],
        "client-1.2": [...granted(1, 201, 15, { key: "set-2", askedAt: 95 }), ...released(1, 300)],
      },
    });
    expect(found).toEqual(["tokens"]);
  });

  test("are all or none", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10, { ...both, tokens: { "set-1": "10" } }), ...released(1, 200)],
      },
    });
    expect(found).toEqual(["multi-lock"]);
  });

  describe("of which an operator breaks one", () => {
    const broken = (renewedUntil: number): Readonly<Record<string, readonly ClientRecord[]>> => ({
      "client-0.1": [
        ...granted(1, 100, 10, both),
        { e: "valid", at: 900, requestId: 1, validUntil: renewedUntil },
        { e: "lost", at: 5_000, requestId: 1, reason: "expired" },
      ],
      "client-1.2": [
        { e: "breaking", at: 490, key: "set-2", token: "20" },
        { e: "break-result", at: 500, key: "set-2", answer: "true" },
      ],
    });

    test("have what they had", async () => {
      expect(await violated({ clients: broken(3_500) })).toEqual([]);
    });

    test("must not be renewed as a whole", async () => {
      expect(await violated({ clients: broken(3_501) })).toEqual(["multi-lock"]);
    });
  });

  test("are lost together, and so told of once", async () => {
    const untold: ClientRecord = { e: "unreported", at: 1_150, requestId: 1, validUntil: 1_100 };
    expect(await violated({ clients: { "client-0.1": [...granted(1, 100, 10, both), untold] } })).toEqual([
      "loss-notice",
    ]);
  });

  test("are one ask and one grant in the figures", async () => {
    await plant({ clients: { "client-0.1": [...granted(1, 100, 10, both), ...released(1, 200)] } });
    const { figures } = await judge(folder());
    expect(figures).toMatchObject({
      requests: 1,
      grants: 1,
      byLock: { all: { requests: 1, grants: 1, losses: 0 } },
      grantsByKey: { "set-1": 1, "set-2": 1 },
    });
  });
});

describe("a reentrant lock", () => {
  const nest = { key: "nested-1", lockKind: "reentrant", reentrantHold: "a" } as const;
  const outer = granted(1, 100, 10, nest);
  const inner = (token: number): ClientRecord[] => granted(2, 110, token, { ...nest, kind: "nested" });

  test("is held until the last of its leases is released", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...outer, ...inner(10), ...released(1, 200), ...released(2, 300)],
        "client-1.2": [...granted(1, 299, 11, { ...nest, reentrantHold: "b" }), ...released(1, 400)],
      },
    });
    expect(found).toEqual(["exclusion"]);
  });

  test("is free then", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...outer, ...inner(10), ...released(2, 200), ...released(1, 300)],
        "client-1.2": [...granted(1, 300.5, 11, { ...nest, reentrantHold: "b" }), ...released(1, 400)],
      },
    });
    expect(found).toEqual([]);
  });

  test("lets its holder in with the same token", async () => {
    const found = await violated({
      clients: { "client-0.1": [...outer, ...inner(11), ...released(2, 200), ...released(1, 300)] },
    });
    expect(found).toContain("reentry");
  });

  test.each(["lease-lost", "wait-timeout"])("must not refuse its holder: %s", async (code) => {
    const refused: ClientRecord[] = [
      { e: "asked", at: 110, requestId: 2, kind: "nested", waitMs: 50, ...nest },
      { e: "refused", at: 160, requestId: 2, code },
    ];
    const clients = { "client-0.1": [...outer, ...refused, ...released(1, 300)] };
    expect(await violated({ clients })).toEqual(["reentry"]);
  });

  test("may refuse who waits for another branch too long, and who has lost it", async () => {
    const asked: ClientRecord = { e: "asked", at: 110, requestId: 2, kind: "nested", waitMs: 50, ...nest };
    const found = await violated({
      clients: {
        "client-0.1": [
          ...outer,
          ...granted(4, 109, 10, { ...nest, kind: "nested" }),
          asked,
          { e: "refused", at: 160, requestId: 2, code: "wait-timeout" },
          ...released(4, 161),
          { e: "lost", at: 200, requestId: 1, reason: "expired" },
          { ...asked, at: 201, requestId: 3 },
          { e: "refused", at: 202, requestId: 3, code: "lease-lost" },
        ],
      },
    });
    expect(found).toEqual([]);
  });

  test("gives nobody else the token of its holder", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...outer, ...released(1, 200)],
        "client-1.2": [...granted(1, 300, 10, { ...nest, reentrantHold: "b" }), ...released(1, 400)],
      },
    });
    expect(found).toEqual(["tokens"]);
  });
});

describe("an election", () => {
  const term = { key: "leader-1", lockKind: "election" } as const;

  test("has one leader after another", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10, term), ...released(1, 200)],
        "client-1.2": [...granted(1, 201, 11, term), ...released(1, 300)],
      },
    });
    expect(found).toEqual([]);
  });

  test("has no leader before the term of a killed one is over", async () => {
    const found = await violated({
      clients: {
        "client-0.1": granted(1, 100, 10, { ...term, until: 600 }),
        "client-1.2": [...granted(1, 599, 11, term), ...released(1, 700)],
      },
      coordinator: [
        { e: "killed", at: 300, process: "client-0.1" },
        { e: "phase", at: 100_000, phase: "end", round: 1 },
      ],
    });
    expect(found).toContain("exclusion");
  });

  test("has rising tokens", async () => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10, term), ...released(1, 200)],
        "client-1.2": [...granted(1, 201, 9, term), ...released(1, 300)],
      },
    });
    expect(found).toContain("tokens");
  });
});

test("the report tells of each kind, and of how many were valid at once", async () => {
  await plant({
    clients: {
      "client-0.1": [
        ...granted(1, 100, 10, reads),
        ...granted(2, 100, 20, permits(3)),
        ...released(1, 200),
        ...released(2, 200),
      ],
      "client-1.2": [...granted(1, 150, 11, reads), ...released(1, 250)],
      "client-2.3": [...granted(1, 300, 12, writes), ...released(1, 350)],
    },
  });
  const { figures } = await judge(folder());
  expect(figures.maxConcurrent).toEqual({ "book-1": "2 readers", "permits-1": "3 of 4 permits" });
  expect(figures.byLock).toMatchObject({
    read: { requests: 2, grants: 2, losses: 0 },
    write: { requests: 1, grants: 1 },
    semaphore: { requests: 1, grants: 1 },
  });
});
