import { memory } from "holdfast/memory";
import { manualClock } from "holdfast/testing";
import { expect, test } from "vitest";

import { release, acquireNow } from "../../support/memory-requests.ts";

test("all pages but the last are full, and no lock is listed twice", async () => {
  const driver = memory({ clock: manualClock() });
  for (const key of ["d", "b", "a", "c", "other"]) {
    await acquireNow(driver, `${key === "other" ? "" : "p:"}${key}`);
  }
  const pages: string[][] = [];
  let cursor: string | null = null;
  do {
    const page = await driver.list({ prefix: "p:", cursor, limit: 2 });
    pages.push(page.locks.map(({ key }) => key));
    cursor = page.cursor;
  } while (cursor !== null);
  expect(pages).toEqual([
    ["p:a", "p:b"],
    ["p:c", "p:d"],
  ]);
});

test("locks that appear or end between two pages neither hide nor repeat other locks", async () => {
  const driver = memory({ clock: manualClock() });
  const grants = new Map<string, Awaited<ReturnType<typeof acquireNow>>>();
  for (const key of ["a", "b", "c", "d"]) {
    grants.set(key, await acquireNow(driver, key));
  }
  const first = await driver.list({ prefix: "", cursor: null, limit: 2 });
  for (const grant of [grants.get("a"), grants.get("b")]) {
    await release(driver, grant as NonNullable<typeof grant>);
  }
  await acquireNow(driver, "bb");
  const second = await driver.list({ prefix: "", cursor: first.cursor, limit: 10 });
  expect(second.locks.map(({ key }) => key)).toEqual(["bb", "c", "d"]);
  expect(second.cursor).toBeNull();
});

test("a cursor that no page has returned is refused", async () => {
  const driver = memory({ clock: manualClock() });
  await expect(driver.list({ prefix: "", cursor: "zzz", limit: 2 })).rejects.toThrow(RangeError);
});

test("an expired lock is not listed, though no timer ran", async () => {
  const clock = manualClock();
  const driver = memory({ clock });
  await acquireNow(driver, "a", { ttlMs: 100 });
  clock.block(100);
  expect(await driver.list({ prefix: "", cursor: null, limit: 10 })).toEqual({ locks: [], cursor: null });
});
