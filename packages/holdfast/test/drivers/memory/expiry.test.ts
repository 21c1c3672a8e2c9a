import { memory } from "holdfast/memory";
import { manualClock, manualRandom } from "holdfast/testing";
import { expect, test } from "vitest";

import type { Driver } from "../../../src/driver.ts";
import { release, acquireNow, grantOf, outcomeOf, request } from "../../support/memory-requests.ts";

function opened() {
  const clock = manualClock({ now: 1_000 });
  const driver: Driver = memory({ clock, random: manualRandom(1) });
  return { clock, driver };
}

test("grants expire at their own times, in whatever order they were made", async () => {
  const { clock, driver } = opened();
  const freed: string[] = [];
  for (const [key, ttlMs] of [
    ["late", 300],
    ["early", 100],
    ["middle", 200],
  ] as const) {
    await acquireNow(driver, key, { ttlMs });
    void driver.acquire(request(driver, key)).result.then(() => freed.push(`${key} at ${clock.now()}`));
  }
  await clock.advance(99);
  expect(freed).toEqual([]);
  await clock.advance(1_000);
  expect(freed).toEqual(["early at 1100", "middle at 1200", "late at 1300"]);
});

test("validity ends before another caller can acquire the lock", async () => {
  const { clock, driver } = opened();
  const first = await acquireNow(driver, "key", { ttlMs: 1_000 });
  const waiter = driver.acquire(request(driver, "key"));
  await clock.advance(1_000);
  const second = await grantOf(waiter);
  expect(first.validity.until).toBeLessThan(clock.now());
  expect(second.validity.until).toBe(clock.now() + 10_000 - 102);
});

test("a holder whose TTL has passed is expired, though no timer ran", async () => {
  const { clock, driver } = opened();
  const first = await acquireNow(driver, "key", { ttlMs: 100 });
  clock.block(100);
  expect((await driver.inspect("key")).holders).toEqual([]);
  expect(await driver.verify("key", first.token)).toEqual({ outcome: "lost", reason: "expired" });
  expect(await release(driver, first)).toBe(false);
  await acquireNow(driver, "key", { deadline: null });
  expect(await driver.verify("key", first.token)).toEqual({ outcome: "lost", reason: "stolen" });
});

test("a waiter for a holder that expired during a blocked event loop comes first", async () => {
  const { clock, driver } = opened();
  await acquireNow(driver, "key", { ttlMs: 100 });
  const waiter = driver.acquire(request(driver, "key"));
  clock.block(200);
  expect(await driver.acquire(request(driver, "key", { deadline: null })).result).toMatchObject({
    outcome: "held",
  });
  expect(await outcomeOf(waiter)).toMatchObject({ outcome: "granted" });
});

test("a waiter past its deadline is skipped, though no timer ran", async () => {
  const { clock, driver } = opened();
  const first = await acquireNow(driver, "key");
  const late = driver.acquire(request(driver, "key", { deadline: clock.now() + 100 }));
  const patient = driver.acquire(request(driver, "key"));
  clock.block(100);
  expect(await release(driver, first)).toBe(true);
  expect(await late.result).toMatchObject({ outcome: "held" });
  expect(await outcomeOf(patient)).toMatchObject({ outcome: "granted" });
});

test("at its deadline a waiter gets the holder and its own position", async () => {
  const { clock, driver } = opened();
  await acquireNow(driver, "key", { info: { owner: "somebody", reason: "work" } });
  driver.acquire(request(driver, "key"));
  const waiter = driver.acquire(request(driver, "key", { deadline: clock.now() + 250 }));
  await clock.advance(249);
  expect(await outcomeOf(waiter)).toBeUndefined();
  await clock.advance(1);
  expect(await waiter.result).toMatchObject({
    outcome: "held",
    holder: { owner: "somebody", reason: "work", remainingMs: 9_750 },
    position: 1,
  });
  expect((await driver.inspect("key")).waiterCount).toBe(1);
});

test("a request whose deadline is now gets a reply", async () => {
  const { clock, driver } = opened();
  const first = await acquireNow(driver, "key", { deadline: clock.now() });
  const second = driver.acquire(request(driver, "key", { deadline: clock.now() - 1 }));
  await clock.advance(0);
  expect(await second.result).toMatchObject({ outcome: "held", position: 0 });
  expect(await release(driver, first)).toBe(true);
});

test("extend leaves a grant alone whose number is larger than the lease's", async () => {
  const { driver } = opened();
  const { key, token, fencingToken } = await acquireNow(driver, "key", { ttlMs: 1_000 });
  const extendRequest = { key, token, fencingToken: fencingToken - 1n, ttlMs: 60_000, info: undefined };
  expect(await driver.extend(extendRequest)).toEqual({ outcome: "lost", reason: "expired" });
  expect((await driver.inspect(key)).remainingMs).toBe(1_000);
});

test("extend raises the TTL, never shortens it, and never recreates a grant", async () => {
  const { clock, driver } = opened();
  const { key, token, fencingToken } = await acquireNow(driver, "key", { ttlMs: 1_000 });
  const extension = await driver.extend({ key, token, fencingToken, ttlMs: 5_000, info: undefined });
  expect(extension).toMatchObject({ outcome: "extended", validity: { until: clock.now() + 5_000 - 52 } });
  await driver.extend({ key, token, fencingToken, ttlMs: 100, info: undefined });
  await clock.advance(4_999);
  expect((await driver.inspect(key)).remainingMs).toBe(1);
  await clock.advance(1);
  const late = await driver.extend({ key, token, fencingToken, ttlMs: 5_000, info: undefined });
  expect(late).toEqual({ outcome: "lost", reason: "expired" });
  expect((await driver.inspect(key)).holders).toEqual([]);
});

test("the TTL stands still while the machine sleeps", async () => {
  const { clock, driver } = opened();
  const { key, token } = await acquireNow(driver, "key", { ttlMs: 1_000 });
  clock.sleep(3_600_000);
  await clock.advance(999);
  expect(await driver.verify(key, token)).toMatchObject({ outcome: "valid" });
  await clock.advance(1);
  expect(await driver.verify(key, token)).toMatchObject({ outcome: "lost" });
});

test("verify counts from its request, and from the remaining TTL", async () => {
  const { clock, driver } = opened();
  const { key, token } = await acquireNow(driver, "key", { ttlMs: 1_000 });
  await clock.advance(600);
  const left = 400 - 6;
  const validity = { until: clock.now() + left, untilWall: clock.wall() + left };
  expect(await driver.verify(key, token)).toEqual({ outcome: "valid", validity });
});

test("an expiry keeps no process alive, a waiter with a deadline does, and no timer stays at the end", async () => {
  const { clock, driver } = opened();
  const first = await acquireNow(driver, "key");
  expect([clock.timers(true), clock.timers(false)]).toEqual([0, 1]);
  const waiter = driver.acquire(request(driver, "key"));
  expect([clock.timers(true), clock.timers(false)]).toEqual([1, 1]);
  await release(driver, first);
  const second = await grantOf(waiter);
  expect(clock.timers(true)).toBe(0);
  await release(driver, second);
  expect(clock.timers()).toBe(0);
});
