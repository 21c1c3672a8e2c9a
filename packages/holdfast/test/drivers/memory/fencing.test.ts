import { memory } from "holdfast/memory";
import { manualClock, manualRandom } from "holdfast/testing";
import { expect, test } from "vitest";

import type { Driver, Grant } from "../../../src/driver.ts";
import { release, acquireNow } from "../../support/memory-requests.ts";

function opened() {
  const clock = manualClock({ wall: 1_000_000 });
  const driver: Driver = memory({ clock, random: manualRandom(1) });
  return { clock, driver };
}

test("numbers are the wall clock in microseconds, or the next ones", async () => {
  const { clock, driver } = opened();
  const first = await acquireNow(driver, "key");
  expect([first.fencingToken, first.fencingCount]).toEqual([1_000_000_000n, 1]);
  await release(driver, first);
  const second = await acquireNow(driver, "key", { fencingCount: 16 });
  expect([second.fencingToken, second.fencingCount]).toEqual([1_000_000_001n, 16]);
  await release(driver, second);
  const third = await acquireNow(driver, "key");
  expect(third.fencingToken).toBe(1_000_000_017n);
  await release(driver, third);
  await clock.advance(1);
  expect((await acquireNow(driver, "key")).fencingToken).toBe(1_000_001_000n);
});

test("numbers rise although the wall clock stepped back while the lock was free", async () => {
  const { clock, driver } = opened();
  const first = await acquireNow(driver, "key", { ttlMs: 100 });
  await clock.advance(100);
  clock.jumpWall(-500_000);
  expect((await acquireNow(driver, "key")).fencingToken).toBe(first.fencingToken + 1n);
});

test("numbers rise over all keys, and no other record of a free key stays", async () => {
  const { clock, driver } = opened();
  const first = await acquireNow(driver, "key", { fencingCount: 100 });
  expect((await driver.inspect("key")).fencingToken).toBe(first.fencingToken);
  await release(driver, first);
  expect((await driver.inspect("key")).fencingToken).toBeNull();
  clock.jumpWall(-500_000);
  expect((await acquireNow(driver, "other")).fencingToken).toBe(first.fencingToken + 100n);
  const again = await acquireNow(driver, "key");
  expect(again.fencingToken).toBeGreaterThan(first.fencingToken + 99n);
});

test("a number of a block is unknown while a later one may be in use, and stale once a later one is known", async () => {
  const { driver } = opened();
  const { key, token, fencingToken } = await acquireNow(driver, "key", { fencingCount: 4 });
  const check = (offset: bigint) => driver.checkFence(key, fencingToken + offset);
  expect(await Promise.all([check(-1n), check(0n), check(3n), check(4n)])).toEqual([
    "stale",
    "unknown",
    "current",
    "stale",
  ]);
  const info = { owner: "the second", fencingToken: fencingToken + 1n };
  await driver.extend({ key, token, fencingToken, ttlMs: 1_000, info });
  expect(await Promise.all([check(0n), check(1n), check(2n)])).toEqual(["stale", "unknown", "unknown"]);
  const { holders, fencingToken: newest } = await driver.inspect(key);
  expect(holders).toMatchObject([info]);
  expect(newest).toBe(fencingToken);
});

test("a caller without an owner is named by its instance", async () => {
  const { driver } = opened();
  driver.setOwner("first instance");
  driver.setOwner("second instance");
  const { key, token, fencingToken } = await acquireNow(driver, "key", {
    fencingCount: 2,
    info: { owner: "own", reason: "why" },
  });
  const next = { fencingToken: fencingToken + 1n };
  await driver.extend({ key, token, ...next, ttlMs: 1_000, info: next });
  const { holders } = await driver.inspect(key);
  expect(holders).toEqual([
    {
      owner: "second instance",
      fencingToken: fencingToken + 1n,
      remainingMs: 10_000,
      since: expect.any(Number) as number,
      heldMs: 0,
    },
  ]);
});

test("an unknown option is refused by its name", () => {
  expect(() => memory({ clok: manualClock() } as object)).toThrow(TypeError);
  expect(() => memory({ clok: manualClock() } as object)).toThrow("`clok`");
  expect(() => memory(null as unknown as object)).toThrow(TypeError);
  memory({ clock: undefined, random: undefined });
});

test("each holder of a semaphore may have a block of numbers: no two blocks overlap, and later grants have larger numbers", async () => {
  const { clock, driver } = opened();
  const permit = { fencingCount: 4, lockMode: { kind: "semaphore", permits: 1, limit: 3 } } as const;
  const [first, second] = [await acquireNow(driver, "key", permit), await acquireNow(driver, "key", permit)];
  await release(driver, first);
  clock.jumpWall(-500_000);
  const third = await acquireNow(driver, "key", permit);
  const numbers = [first, second, third].flatMap(({ fencingToken, fencingCount }) =>
    Array.from({ length: fencingCount }, (_, used) => fencingToken + BigInt(used)),
  );
  expect(numbers).toHaveLength(12);
  expect(numbers).toEqual(numbers.map((_, index) => first.fencingToken + BigInt(index)));
});

test("a number of one holder's block does not name other holders, so a break by it leaves them alone", async () => {
  const { driver } = opened();
  const reader = { fencingCount: 3, lockMode: { kind: "read-write", mode: "read" } } as const;
  const [one, other] = [await acquireNow(driver, "key", reader), await acquireNow(driver, "key", reader)];
  const check = ({ fencingToken }: Grant, offset: bigint) => driver.checkFence("key", fencingToken + offset);
  expect(await Promise.all([check(one, 0n), check(one, 2n), check(other, 0n)])).toEqual([
    "unknown",
    "current",
    "unknown",
  ]);
  const next = { fencingToken: one.fencingToken + 1n };
  await driver.extend({ key: "key", token: one.token, ...next, ttlMs: 1_000, info: next });
  expect(await Promise.all([check(one, 0n), check(one, 1n), check(other, 0n)])).toEqual([
    "stale",
    "unknown",
    "unknown",
  ]);
  expect(await driver.breakGrant("key", one.fencingToken + 2n, "test")).toMatchObject({ isBroken: true });
  expect(await Promise.all([check(one, 1n), check(one, 2n), check(other, 2n)])).toEqual([
    "stale",
    "stale",
    "current",
  ]);
  expect(await release(driver, other)).toBe(true);
});
