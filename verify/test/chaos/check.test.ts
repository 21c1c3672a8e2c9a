import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { describe, expect, test } from "vitest";

import { violationsOf } from "../../chaos/judge/judge.ts";
import { readHistory } from "../../chaos/judge/read-history.ts";
import { endOfRun, granted, historyFixture, opened, released } from "./planted-history.ts";

// Histories with something wrong in them, one for each rule: the checker has to find it, and nothing else.

const { finds, folder, plant, violated } = historyFixture();

test("leases that follow each other violate no rule", async () => {
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
  test("is violated by a grant while another's lease is valid", () =>
    finds(["exclusion"], {
      "client-0.1": [...granted(1, 100, 10), ...released(1, 200)],
      "client-1.2": [...granted(1, 199.999, 11), ...released(1, 300)],
    }));

  test("counts validity that a renewal has moved", () =>
    finds(["exclusion"], {
      "client-0.1": [
        ...granted(1, 100, 10, { until: 600 }),
        { e: "valid", at: 400, requestId: 1, validUntil: 900 },
        { e: "lost", at: 950, requestId: 1, reason: "expired" },
      ],
      "client-1.2": [...granted(1, 800, 11), ...released(1, 820)],
    }));

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

  test("is not judged after an operator breaks the lock", () =>
    finds([], {
      "client-0.1": [...granted(1, 100, 10), { e: "lost", at: 400, requestId: 1, reason: "broken" }],
      "client-1.2": [...granted(1, 300, 11), ...released(1, 320)],
      "client-2.3": [{ e: "breaking", at: 299, key: "hot", token: "10" }],
    }));

  test("is judged before an operator breaks the lock", () =>
    finds(["exclusion"], {
      "client-0.1": [...granted(1, 100, 10), { e: "lost", at: 400, requestId: 1, reason: "broken" }],
      "client-1.2": [...granted(1, 298, 11), ...released(1, 320)],
      "client-2.3": [{ e: "breaking", at: 299, key: "hot", token: "10" }],
    }));
});

describe("tokens", () => {
  test("rise in the order of the grants", () =>
    finds(["tokens"], {
      "client-0.1": [...granted(1, 100, 10, { requestedAt: 90 }), ...released(1, 200)],
      "client-1.2": [...granted(1, 300, 9, { requestedAt: 95 }), ...released(1, 400)],
    }));

  test("are larger than every token that was granted before the request, even if the lease was never valid", () =>
    finds(["tokens"], {
      "client-0.1": [...granted(1, 100, 10), ...released(1, 200)],
      "client-1.2": [...granted(1, 2_000, 9, { until: 1_900 }), ...released(1, 2_001, 1_900)],
    }));

  test("are unique", () =>
    finds(["tokens"], {
      "client-0.1": [...granted(1, 100, 10), ...released(1, 200)],
      "client-1.2": [...granted(1, 300, 10), ...released(1, 400)],
    }));
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

  test("may lose a write of the counter that does not check tokens", async () => {
    const found = await violated({
      resource: [
        { e: "write", at: 100, token: "10", ...visit, checked: [0, 1], unchecked: [0, 1] },
        { e: "write", at: 101, token: "11", ...visit, checked: [1, 2], unchecked: [1, 1] },
      ],
    });
    expect(found).toEqual([]);
  });
});

test("the checker skips an incomplete last line, but rejects an incomplete line before others", async () => {
  await plant({ clients: { "client-0.1": [] } });
  const path = join(folder(), "history", "client-1.2.ndjson");
  await writeFile(path, `${JSON.stringify(opened)}\n{"e":"req`);
  expect(violationsOf(await readHistory(folder()))).toEqual([]);
  await writeFile(path, `{"e":"req\n${JSON.stringify(opened)}\n`);
  await expect(readHistory(folder())).rejects.toThrow("client-1.2.ndjson");
});
