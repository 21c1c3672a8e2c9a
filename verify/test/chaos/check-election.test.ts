import { describe, expect, test } from "vitest";

import { granted, historyFixture, released } from "./planted-history.ts";

const { finds, violated } = historyFixture();

describe("an election", () => {
  const term = { key: "leader-1", lockKind: "election" } as const;

  test("has one leader after another", () =>
    finds([], {
      "client-0.1": [...granted(1, 100, 10, term), ...released(1, 200)],
      "client-1.2": [...granted(1, 201, 11, term), ...released(1, 300)],
    }));

  test("has no leader before the term of a killed leader has expired", async () => {
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

  test("has rising tokens", () =>
    finds(["tokens"], {
      "client-0.1": [...granted(1, 100, 10, term), ...released(1, 200)],
      "client-1.2": [...granted(1, 201, 9, term), ...released(1, 300)],
    }));
});
