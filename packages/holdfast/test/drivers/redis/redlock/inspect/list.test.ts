import type { LocksAdmin } from "holdfast";
import { expect, test } from "vitest";

import { FakeQuorum, type FakeProcess } from "../../../../support/fake-quorum.ts";

type Page = Awaited<ReturnType<LocksAdmin["list"]>>;

const keys = ["k0", "k1", "k2", "k3", "k4"];

test("all locks are listed although one node cannot scan its keys", async () => {
  for (const failing of [0, 1, 2]) {
    const { lab, process } = await holding();
    process.faults[failing]?.refuse(new Error("read ECONNRESET"), 1);
    expect(await lab.settleWithin(3_000, listed(process, 100))).toEqual(keys);
  }
});

test("each lock is listed once, page by page", async () => {
  const { lab, process } = await holding();
  expect(await lab.settleWithin(3_000, listed(process, 1))).toEqual(keys);
});

test("a cursor that no page has returned is refused, and is no failure of the nodes", async () => {
  const { process } = await holding();
  for (const cursor of ["zzz", "0:1", ":3:0", "0:1:18446744073709551616", "x:1:0"]) {
    await expect(process.locks.admin.list({ cursor }), cursor).rejects.toThrow(RangeError);
  }
});

async function holding(): Promise<{ lab: FakeQuorum; process: FakeProcess }> {
  const lab = new FakeQuorum(3);
  const process = await lab.warmUp();
  await lab.settleWithin(200, Promise.all(keys.map((key) => process.locks.acquire(key, { ttlMs: 60_000 }))));
  return { lab, process };
}

/** The keys of all pages. */
async function listed({ locks }: FakeProcess, limit: number): Promise<string[]> {
  const found: string[] = [];
  let page = await locks.admin.list({ limit });
  for (; page.cursor !== null; page = await locks.admin.list({ limit, cursor: page.cursor })) {
    found.push(...keysOf(page));
  }
  return [...found, ...keysOf(page)].toSorted();
}

function keysOf(page: Page): string[] {
  return page.locks.map(({ key }) => key);
}
