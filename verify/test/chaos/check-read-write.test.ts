import { describe, expect, test } from "vitest";

import type { ClientRecord } from "../../chaos/judge/history.ts";
import type { EngineName } from "../../chaos/plan/plan.ts";
import { granted, historyFixture, released } from "./planted-history.ts";

const { finds, violated } = historyFixture();

const reads = { key: "book-1", lockKind: "read" } as const;
const writes = { key: "book-1", lockKind: "write" } as const;

describe("read-write", () => {
  test("readers may overlap, and a writer follows them", () =>
    finds([], {
      "client-0.1": [...granted(1, 100, 10, reads), ...released(1, 200)],
      "client-1.2": [...granted(1, 150, 11, reads), ...released(1, 250)],
      "client-2.3": [...granted(1, 250.5, 12, writes), ...released(1, 300)],
    }));

  test("a writer must not overlap a reader, even after another reader has released", () =>
    finds(["exclusion"], {
      "client-0.1": [...granted(1, 100, 10, reads), ...released(1, 200)],
      "client-1.2": [...granted(1, 150, 11, reads), ...released(1, 160)],
      "client-2.3": [...granted(1, 199.999, 12, writes), ...released(1, 300)],
    }));

  test("a reader must not overlap a writer", () =>
    finds(["exclusion"], {
      "client-0.1": [...granted(1, 100, 10, writes), ...released(1, 200)],
      "client-1.2": [...granted(1, 199, 11, reads), ...released(1, 300)],
    }));

  test("two writers exclude each other", () =>
    finds(["exclusion"], {
      "client-0.1": [...granted(1, 100, 10, writes), ...released(1, 200)],
      "client-1.2": [...granted(1, 199, 11, writes), ...released(1, 300)],
    }));

  describe("a downgraded writer", () => {
    const downgraded = (token: number): ClientRecord[] => [
      ...granted(1, 100, 10, writes),
      { e: "downgraded", at: 150, requestId: 1 },
      ...granted(2, 155, token, { ...reads, kind: "downgrade", requestedAt: 150, waitMs: 0 }),
      ...released(2, 300),
    ];

    test("admits readers, and keeps its token", () =>
      finds([], {
        "client-0.1": downgraded(10),
        "client-1.2": [...granted(1, 151, 11, reads), ...released(1, 400)],
      }));

    test("admits no writer", () =>
      finds(["exclusion"], {
        "client-0.1": downgraded(10),
        "client-1.2": [...granted(1, 151, 11, writes), ...released(1, 400)],
      }));

    test("admits no reader before the downgrade", () =>
      finds(["exclusion"], {
        "client-0.1": downgraded(10),
        "client-1.2": [...granted(1, 149, 11, reads), ...released(1, 400)],
      }));

    test("must not get another token", async () => {
      expect(await violated({ clients: { "client-0.1": downgraded(11) } })).toContain("tokens");
    });
  });

  describe("tokens", () => {
    test("of a writer are larger than the tokens of earlier readers", () =>
      finds(["tokens"], {
        "client-0.1": [...granted(1, 100, 10, reads), ...released(1, 200)],
        "client-1.2": [...granted(1, 201, 9, { ...writes, requestedAt: 95 }), ...released(1, 300)],
      }));

    test("of a reader are larger than the token of an earlier writer", () =>
      finds(["tokens"], {
        "client-0.1": [...granted(1, 100, 10, writes), ...released(1, 200)],
        "client-1.2": [...granted(1, 201, 9, { ...reads, requestedAt: 95 }), ...released(1, 300)],
      }));

    test("of a reader are larger than the token of a reader that was granted before the request", () =>
      finds(["tokens"], {
        "client-0.1": [...granted(1, 100, 10, reads), ...released(1, 200)],
        "client-1.2": [...granted(1, 150, 9, reads), ...released(1, 300)],
      }));

    test("of an adopted reader are not smaller than the token of an earlier writer", () =>
      finds(["tokens"], {
        "client-0.1": [...granted(1, 100, 10, reads), { e: "transferred", at: 110, requestId: 1 }],
        "client-1.2": [...granted(1, 200, 11, writes), ...released(1, 210)],
        "client-2.3": [...granted(1, 300, 10, { ...reads, kind: "adopt" }), ...released(1, 310)],
      }));

    const alike: Readonly<Record<string, readonly ClientRecord[]>> = {
      "client-0.1": [...granted(1, 100, 10, reads), ...released(1, 200)],
      "client-1.2": [...granted(1, 150, 10, { ...reads, requestedAt: 95 }), ...released(1, 300)],
    };

    test.each<[EngineName, readonly string[]]>([
      ["redis", ["tokens"]],
      ["redlock", []],
    ])("of overlapping readers may be equal only on a quorum (%s)", async (engine, expected) => {
      expect(await violated({ engine, clients: alike })).toEqual(expected);
    });

    test("of readers that do not overlap differ", async () => {
      const found = await violated({
        engine: "redlock",
        clients: {
          "client-0.1": [...granted(1, 100, 10, reads), ...released(1, 200)],
          "client-1.2": [...granted(1, 300, 10, reads), ...released(1, 400)],
        },
      });
      expect(found).toContain("tokens");
    });

    test("of a reader and a writer differ", async () => {
      const found = await violated({
        engine: "redlock",
        clients: {
          "client-0.1": [...granted(1, 100, 10, writes), ...released(1, 200)],
          "client-1.2": [...granted(1, 201, 10, { ...reads, requestedAt: 95 }), ...released(1, 300)],
        },
      });
      expect(found).toEqual(["tokens"]);
    });

    test("of a shared attempt are judged from its first request on", () =>
      finds([], {
        "client-0.1": [
          { e: "requested", at: 90, requestId: 1, ...reads, kind: "attempt", waitMs: 5, attemptId: "a" },
          { e: "refused", at: 101, requestId: 1, code: "engine-unavailable" },
          ...granted(2, 160, 10, { ...reads, kind: "attempt", attemptId: "a" }),
          ...released(2, 200),
        ],
        "client-1.2": [...granted(1, 150, 11, reads), ...released(1, 300)],
      }));
  });

  describe("the resource", () => {
    const visit = { key: "book-1", from: "client-0.1", accepted: true } as const;

    test("may accept readers in any order", async () => {
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

  test("a break excuses only the holder whose grant was broken, and only from then on", async () => {
    const broken = (token: string): ClientRecord[] => [{ e: "breaking", at: 149, key: "book-1", token }];
    const clients = (token: string): Readonly<Record<string, readonly ClientRecord[]>> => ({
      "client-0.1": [...granted(1, 100, 10, reads), { e: "lost", at: 400, requestId: 1, reason: "broken" }],
      "client-0.2": [...granted(1, 120, 11, reads), ...released(1, 140)],
      "client-1.3": [...granted(1, 150, 12, writes), ...released(1, 200)],
      "client-2.4": broken(token),
    });
    await finds([], clients("10"));
  });

  test("a break does not excuse another holder", () =>
    finds(["exclusion"], {
      "client-0.1": [
        ...granted(1, 100, 10, reads),
        ...granted(2, 120, 11, reads),
        ...released(1, 400),
        { e: "lost", at: 160, requestId: 2, reason: "broken" },
      ],
      "client-1.2": [...granted(1, 200, 12, writes), ...released(1, 300)],
      "client-2.3": [{ e: "breaking", at: 149, key: "book-1", token: "11" }],
    }));
});
