import { describe, expect, test } from "vitest";

import type { ClientRecord } from "../../chaos/judge/history.ts";
import { granted, historyFixture, released } from "./planted-history.ts";

const { finds, violated } = historyFixture();

describe("a reentrant lock", () => {
  const nest = { key: "nested-1", lockKind: "reentrant", reentrantHold: "a" } as const;
  const outer = granted(1, 100, 10, nest);
  const inner = (token: number): ClientRecord[] => granted(2, 110, token, { ...nest, kind: "nested" });

  test("is held until the last of its leases is released", () =>
    finds(["exclusion"], {
      "client-0.1": [...outer, ...inner(10), ...released(1, 200), ...released(2, 300)],
      "client-1.2": [...granted(1, 299, 11, { ...nest, reentrantHold: "b" }), ...released(1, 400)],
    }));

  test("is free after the release of the last lease", () =>
    finds([], {
      "client-0.1": [...outer, ...inner(10), ...released(2, 200), ...released(1, 300)],
      "client-1.2": [...granted(1, 300.5, 11, { ...nest, reentrantHold: "b" }), ...released(1, 400)],
    }));

  test("admits its holder with the same token", async () => {
    const found = await violated({
      clients: { "client-0.1": [...outer, ...inner(11), ...released(2, 200), ...released(1, 300)] },
    });
    expect(found).toContain("reentry");
  });

  test.each(["lease-lost", "wait-timeout"])("must not refuse its holder: %s", async (code) => {
    const refused: ClientRecord[] = [
      { e: "requested", at: 110, requestId: 2, kind: "nested", waitMs: 50, ...nest },
      { e: "refused", at: 160, requestId: 2, code },
    ];
    const clients = { "client-0.1": [...outer, ...refused, ...released(1, 300)] };
    await finds(["reentry"], clients);
  });

  test("may refuse a holder that waits too long for another branch, or that has lost the lock", async () => {
    const requested: ClientRecord = {
      e: "requested",
      at: 110,
      requestId: 2,
      kind: "nested",
      waitMs: 50,
      ...nest,
    };
    const found = await violated({
      clients: {
        "client-0.1": [
          ...outer,
          ...granted(4, 109, 10, { ...nest, kind: "nested" }),
          requested,
          { e: "refused", at: 160, requestId: 2, code: "wait-timeout" },
          ...released(4, 161),
          { e: "lost", at: 200, requestId: 1, reason: "expired" },
          { ...requested, at: 201, requestId: 3 },
          { e: "refused", at: 202, requestId: 3, code: "lease-lost" },
        ],
      },
    });
    expect(found).toEqual([]);
  });

  test("gives no other holder the same token", () =>
    finds(["tokens"], {
      "client-0.1": [...outer, ...released(1, 200)],
      "client-1.2": [...granted(1, 300, 10, { ...nest, reentrantHold: "b" }), ...released(1, 400)],
    }));
});
