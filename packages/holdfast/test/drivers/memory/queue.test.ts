import { memory } from "holdfast/memory";
import { manualClock, manualRandom } from "holdfast/testing";
import { expect, test } from "vitest";

import type { Driver, PendingAcquire } from "../../../src/driver.ts";
import { release, acquireNow, grantOf, outcomeOf, request } from "../../support/memory-requests.ts";

function opened() {
  const clock = manualClock();
  const driver: Driver = memory({ clock, random: manualRandom(1) });
  return { clock, driver };
}

/** Releases each lease in turn. @returns the names in the order of their grants */
async function served(driver: Driver, waiting: Record<string, PendingAcquire>): Promise<string[]> {
  const order: string[] = [];
  const all = Object.entries(waiting).map(async ([name, pending]) => {
    const grant = await grantOf(pending);
    order.push(name);
    await release(driver, grant);
  });
  await Promise.all(all);
  return order;
}

test("waiters are served by ticket, in whatever order their requests came", async () => {
  const { driver } = opened();
  const first = await acquireNow(driver, "key");
  const [one, two, three, four] = [
    driver.ticket("key"),
    driver.ticket("key"),
    driver.ticket("key"),
    driver.ticket("key"),
  ];
  const waiting = {
    three: driver.acquire(request(driver, "key", { ticket: three })),
    one: driver.acquire(request(driver, "key", { ticket: one })),
    four: driver.acquire(request(driver, "key", { ticket: four })),
    two: driver.acquire(request(driver, "key", { ticket: two })),
    five: driver.acquire(request(driver, "key")),
  };
  await release(driver, first);
  expect(await served(driver, waiting)).toEqual(["one", "two", "three", "four", "five"]);
});

test("equal tickets are served in the order of arrival", async () => {
  const { driver } = opened();
  const first = await acquireNow(driver, "key");
  const names = ["a", "b", "c", "d"];
  const waiting = Object.fromEntries(
    names.map((name) => [name, driver.acquire(request(driver, "key", { ticket: 7 }))]),
  );
  await release(driver, first);
  expect(await served(driver, waiting)).toEqual(names);
});

test("tickets rise strictly, even if the wall clock steps back", () => {
  const { clock, driver } = opened();
  const tickets = Array.from({ length: 100 }, (_, i) => {
    clock.jumpWall(i % 2 === 0 ? -1_000 : 500);
    return driver.ticket("key") as number;
  });
  expect(tickets.every((ticket, i) => i === 0 || ticket > (tickets[i - 1] as number))).toBe(true);
});

test("the next waiter has the lock in the turn of the release", async () => {
  const { driver } = opened();
  const first = await acquireNow(driver, "key");
  const waiter = driver.acquire(request(driver, "key"));
  const released = driver.release("key", first.token, Infinity);
  const tried = driver.acquire(request(driver, "key", { deadline: null }));
  expect(await released).toBe(true);
  expect(await tried.result).toMatchObject({ outcome: "held" });
  await grantOf(waiter);
});

test("requeue lets earlier tickets go first", async () => {
  const { driver } = opened();
  const given = await acquireNow(driver, "key");
  const [early, own] = [driver.ticket("key"), driver.ticket("key")];
  const waiter = driver.acquire(request(driver, "key", { ticket: early }));
  const requeued = driver.requeue(given, request(driver, "key", { ticket: own }));
  expect(await requeued.released).toBe(true);
  expect(await outcomeOf(requeued)).toBeUndefined();
  expect(await release(driver, given)).toBe(false);
  await release(driver, await grantOf(waiter));
  const again = await grantOf(requeued);
  expect(again.token).not.toBe(given.token);
  expect(again.fencingToken).toBeGreaterThan(given.fencingToken);
});

test("requeue gets the lock again if its ticket is the first", async () => {
  const { driver } = opened();
  const given = await acquireNow(driver, "key");
  const [own, later] = [driver.ticket("key"), driver.ticket("key")];
  const waiter = driver.acquire(request(driver, "key", { ticket: later }));
  const requeued = driver.requeue(given, request(driver, "key", { ticket: own }));
  const again = await grantOf(requeued);
  expect(again.fencingToken).toBeGreaterThan(given.fencingToken);
  expect(await outcomeOf(waiter)).toBeUndefined();
});

test("requeue of a lost grant takes no other holder's lock away", async () => {
  const { clock, driver } = opened();
  const given = await acquireNow(driver, "key", { ttlMs: 100 });
  await clock.advance(100);
  const present = await acquireNow(driver, "key");
  const requeued = driver.requeue(given, request(driver, "key"));
  expect(await requeued.released).toBe(false);
  expect(await outcomeOf(requeued)).toBeUndefined();
  await release(driver, present);
  await grantOf(requeued);
});

test("a requeue that only tries ends at once if others wait", async () => {
  const { clock, driver } = opened();
  const given = await acquireNow(driver, "key");
  const waiter = driver.acquire(request(driver, "key"));
  const requeued = driver.requeue(given, request(driver, "key", { deadline: null }));
  await clock.advance(0);
  expect(await requeued.result).toMatchObject({ outcome: "held", position: 0 });
  await grantOf(waiter);
});

test("cancel rejects with its reason, once, and does nothing after a grant", async () => {
  const { driver } = opened();
  const pending = driver.acquire(request(driver, "key"));
  pending.cancel(new Error("too late"));
  const first = await grantOf(pending);
  const waiter = driver.acquire(request(driver, "key"));
  waiter.cancel("first reason");
  waiter.cancel("second reason");
  await expect(waiter.result).rejects.toBe("first reason");
  expect(await release(driver, first)).toBe(true);
});

test("five thousand waiters that leave at once leave no record", async () => {
  const { clock, driver } = opened();
  const first = await acquireNow(driver, "key");
  const waiters = Array.from({ length: 5_000 }, () => driver.acquire(request(driver, "key")));
  expect((await driver.inspect("key")).waiterCount).toBe(5_000);
  expect((await driver.inspect("key")).waiters.length).toBe(100);
  for (const waiter of waiters) {
    waiter.cancel("gone");
  }
  const ends = await Promise.allSettled(waiters.map(({ result }) => result));
  expect(ends.every(({ status }) => status === "rejected")).toBe(true);
  expect(await driver.inspect("key")).toMatchObject({ waiterCount: 0, waiters: [] });
  expect(clock.timers(true)).toBe(0);
  await release(driver, first);
  expect(clock.timers()).toBe(0);
});

test("a break serves the next waiter, and its old holder is notified before any caller continues", async () => {
  const { driver } = opened();
  const first = await acquireNow(driver, "key", { fencingCount: 5 });
  const events: string[] = [];
  const stop = driver.listen({
    lost: (token, reason) => events.push(token === first.token ? reason : "another"),
    notificationsInterrupted: () => events.push("memory misses no notification"),
    engineRecovered: () => events.push("memory is always responsive"),
  });
  const waiter = driver.acquire(request(driver, "key"));
  void waiter.result.then(() => events.push("granted"));
  expect(await driver.breakGrant("key", first.fencingToken + 5n, "test")).toMatchObject({ isBroken: false });
  expect(await driver.breakGrant("key", first.fencingToken - 1n, "test")).toMatchObject({ isBroken: false });
  expect(await driver.breakGrant("key", first.fencingToken + 4n, "test")).toMatchObject({ isBroken: true });
  const second = await grantOf(waiter);
  expect(events).toEqual(["broken", "granted"]);
  stop();
  await driver.breakGrant("key", second.fencingToken, "test");
  expect(events.length).toBe(2);
});

test("close rejects waiters, and resolves nothing afterwards", async () => {
  const { clock, driver } = opened();
  const { key, token, fencingToken } = await acquireNow(driver, "key");
  const waiter = driver.acquire(request(driver, "key", { deadline: Infinity }));
  await driver.close();
  await expect(waiter.result).rejects.toMatchObject({ code: "closed", key: "key" });
  await expect(driver.acquire(request(driver, "key")).result).rejects.toMatchObject({ code: "closed" });
  await expect(driver.inspect("key")).rejects.toMatchObject({ code: "closed" });
  expect(await driver.extend({ key, token, fencingToken, ttlMs: 100, info: undefined })).toMatchObject({
    outcome: "unknown",
  });
  expect(await driver.release(key, token, Infinity)).toBe(false);
  await driver.close();
  expect(clock.timers()).toBe(0);
});
