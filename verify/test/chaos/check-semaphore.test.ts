import { describe, expect, test } from "vitest";

import { granted, historyFixture, released } from "./planted-history.ts";

const { finds, violated } = historyFixture();

/** Permits of a semaphore with four permits. */
const permits = (count: number) => ({ key: "permits-1", lockKind: "semaphore", permits: count }) as const;

describe("a semaphore", () => {
  test("may grant all its permits", () =>
    finds([], {
      "client-0.1": [...granted(1, 100, 10, permits(3)), ...released(1, 200)],
      "client-1.2": [...granted(1, 150, 11, permits(1)), ...released(1, 250)],
      "client-2.3": [...granted(1, 200, 12, permits(3)), ...released(1, 300)],
    }));

  test.each([
    ["the next number", 11, []],
    ["no other number", 12, ["tokens"]],
  ])(
    "hands permits over in a process with %s, whatever other processes are granted",
    async (_, token, expected) => {
      const found = await violated({
        clients: {
          "client-0.1": [
            ...granted(1, 100, 10, permits(1)),
            ...released(1, 200),
            ...granted(2, 205, token, { ...permits(1), requestedAt: 190 }),
            ...released(2, 300),
          ],
          "client-1.2": [...granted(1, 150, 100, permits(1)), ...released(1, 250)],
        },
      });
      expect(found).toEqual(expected);
    },
  );

  test("must not grant more permits", () =>
    finds(["exclusion"], {
      "client-0.1": [...granted(1, 100, 10, permits(3)), ...released(1, 200)],
      "client-1.2": [...granted(1, 150, 11, permits(1)), ...released(1, 250)],
      "client-2.3": [...granted(1, 199.999, 12, permits(1)), ...released(1, 300)],
    }));

  test("must not grant more permits to one holder", async () => {
    const clients = { "client-0.1": [...granted(1, 100, 10, permits(5)), ...released(1, 200)] };
    await finds(["exclusion"], clients);
  });

  test("counts the permits of a killed process until their validity ends", async () => {
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

  test("has rising tokens", () =>
    finds(["tokens"], {
      "client-0.1": [...granted(1, 100, 10, permits(1)), ...released(1, 200)],
      "client-1.2": [...granted(1, 150, 9, permits(1)), ...released(1, 250)],
    }));

  test("has rising tokens for permits that cannot be held at the same time", () =>
    finds(["tokens"], {
      "client-0.1": [...granted(1, 100, 10, permits(3)), ...released(1, 120)],
      "client-1.2": [...granted(1, 150, 9, { ...permits(2), requestedAt: 95 }), ...released(1, 250)],
    }));

  test("has unique tokens", () =>
    finds(["tokens"], {
      "client-0.1": [...granted(1, 100, 10, permits(1)), ...released(1, 200)],
      "client-1.2": [...granted(1, 150, 10, { ...permits(1), requestedAt: 95 }), ...released(1, 250)],
    }));

  test("may grant a smaller token to a request that was sent earlier and answered later", () =>
    finds([], {
      "client-0.1": [...granted(1, 100, 10, permits(1)), ...released(1, 200)],
      "client-1.2": [...granted(1, 150, 9, { ...permits(1), requestedAt: 95 }), ...released(1, 250)],
    }));
});
