import { describe, expect, test } from "vitest";

import type { ClientRecord } from "../../chaos/judge/history.ts";
import { judge } from "../../chaos/judge/judge.ts";
import { granted, historyFixture, released } from "./planted-history.ts";

const { finds, folder, plant, violated } = historyFixture();

describe("several keys", () => {
  const both = {
    key: "set-2",
    keys: ["set-2", "set-1"],
    lockKind: "all",
    tokens: { "set-1": "10", "set-2": "20" },
  } as const;

  test("are held for as long as the lease is valid, each with its token", () =>
    finds([], {
      "client-0.1": [...granted(1, 100, 10, both), ...released(1, 200)],
      "client-1.2": [
        ...granted(1, 201, 11, { key: "set-1" }),
        ...granted(2, 202, 21, { key: "set-2" }),
        ...released(1, 300),
        ...released(2, 300),
      ],
    }));

  test.each([
    ["set-1", 11],
    ["set-2", 21],
  ])("exclude a lease of one key: %s", async (key, token) => {
    const found = await violated({
      clients: {
        "client-0.1": [...granted(1, 100, 10, both), ...released(1, 200)],
        "client-1.2": [...granted(1, 199, token, { key }), ...released(1, 300)],
      },
    });
    expect(found).toEqual(["exclusion"]);
  });

  test("exclude a lease of several keys with one of them", () =>
    finds(["exclusion"], {
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
    }));

  test("have rising tokens for each key", () =>
    finds(["tokens"], {
      "client-0.1": [...granted(1, 100, 10, both), ...released(1, 200)],
      "client-1.2": [...granted(1, 201, 15, { key: "set-2", requestedAt: 95 }), ...released(1, 300)],
    }));

  test("are granted as a whole or not at all", () =>
    finds(["multi-lock"], {
      "client-0.1": [...granted(1, 100, 10, { ...both, tokens: { "set-1": "10" } }), ...released(1, 200)],
    }));

  describe("with one key broken by an operator", () => {
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

    test("keep their validity", async () => {
      expect(await violated({ clients: broken(3_500) })).toEqual([]);
    });

    test("must not be renewed as a whole", async () => {
      expect(await violated({ clients: broken(3_501) })).toEqual(["multi-lock"]);
    });
  });

  test("are lost as one lease, and the loss is reported once", async () => {
    const unreported: ClientRecord = { e: "unreported", at: 1_150, requestId: 1, validUntil: 1_100 };
    expect(await violated({ clients: { "client-0.1": [...granted(1, 100, 10, both), unreported] } })).toEqual(
      ["loss-notice"],
    );
  });

  test("count as one request and one grant in the figures", async () => {
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
