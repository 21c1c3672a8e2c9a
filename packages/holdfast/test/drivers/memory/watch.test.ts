import { memory } from "holdfast/memory";
import { manualClock, manualRandom } from "holdfast/testing";
import { expect, test } from "vitest";

import type { Driver } from "../../../src/driver.ts";
import type { LockEvent } from "../../../src/lock-state.ts";
import { release, acquireNow, grantOf, request } from "../../support/memory-requests.ts";

function opened() {
  const clock = manualClock();
  const driver: Driver = memory({ clock, random: manualRandom(1) });
  return { clock, driver };
}

async function next(events: AsyncIterator<LockEvent>): Promise<string> {
  const { done, value } = (await events.next()) as IteratorResult<LockEvent, undefined>;
  return done === true ? "end" : shown(value);
}

function shown({ type, key, state }: LockEvent): string {
  return `${type} ${key} ${state.holders.length}+${state.waiterCount}`;
}

test("a watch reports a snapshot, grants, waiters and an expiry", async () => {
  const { clock, driver } = opened();
  const events = driver.watch("key", new AbortController().signal)[Symbol.asyncIterator]();
  expect(await next(events)).toBe("snapshot key 0+0");
  const first = await acquireNow(driver, "key");
  expect(await next(events)).toBe("changed key 1+0");
  const waiter = driver.acquire(request(driver, "key", { ttlMs: 100 }));
  expect(await next(events)).toBe("changed key 1+1");
  await release(driver, first);
  await grantOf(waiter);
  expect(await next(events)).toBe("changed key 1+0");
  await clock.advance(100);
  expect(await next(events)).toBe("gone key 0+0");
});

test("a slow reader gets the newest state once, and no intermediate states", async () => {
  const { driver } = opened();
  const events = driver.watch({ prefix: "" }, new AbortController().signal)[Symbol.asyncIterator]();
  const waiting = next(events);
  for (let i = 0; i < 100; i += 1) {
    await release(driver, await acquireNow(driver, "often"));
    await release(driver, await acquireNow(driver, "fleeting"));
  }
  await acquireNow(driver, "often");
  await acquireNow(driver, "last");
  const reported = [await waiting, await next(events)];
  while (reported.at(-1) !== "changed last 1+0") {
    reported.push(await next(events));
  }
  expect(reported.length).toBeLessThan(8);
  expect(reported).toContain("changed often 1+0");
});

test("a change during the snapshot is reported once", async () => {
  const { driver } = opened();
  const held = [await acquireNow(driver, "a"), await acquireNow(driver, "b"), await acquireNow(driver, "c")];
  const events = driver.watch({ prefix: "" }, new AbortController().signal)[Symbol.asyncIterator]();
  expect(await next(events)).toBe("snapshot a 1+0");
  void driver.acquire(request(driver, "b")).result;
  await release(driver, held[2] as (typeof held)[0]);
  await release(driver, held[0] as (typeof held)[0]);
  expect(await next(events)).toBe("snapshot b 1+1");
  expect(await next(events)).toBe("gone a 0+0");
  await acquireNow(driver, "c");
  expect(await next(events)).toBe("changed c 1+0");
});

test("a renewal is not reported, but a new holder inside the process is", async () => {
  const { driver } = opened();
  const { key, token, fencingToken } = await acquireNow(driver, "key");
  const events = driver.watch("key", new AbortController().signal)[Symbol.asyncIterator]();
  await events.next();
  await driver.extend({ key, token, fencingToken, ttlMs: 60_000, info: undefined });
  const event = events.next();
  await driver.extend({
    key,
    token,
    fencingToken,
    ttlMs: 60_000,
    info: { owner: "next", fencingToken: fencingToken + 1n },
  });
  expect((await event).value).toMatchObject({ state: { holders: [{ owner: "next" }] } });
});

test("a watch ends with its signal (at once if already aborted), and with the driver", async () => {
  const { driver } = opened();
  const aborted = driver.watch("key", AbortSignal.abort())[Symbol.asyncIterator]();
  expect(await next(aborted)).toBe("end");
  const abort = new AbortController();
  const read = (async () => {
    const reported: string[] = [];
    for await (const event of driver.watch("key", abort.signal)) {
      reported.push(shown(event));
    }
    return reported;
  })();
  const other = driver.watch("key", new AbortController().signal)[Symbol.asyncIterator]();
  await next(other);
  abort.abort();
  expect(await read).toEqual(["snapshot key 0+0"]);
  const end = next(other);
  await driver.close();
  expect(await end).toBe("end");
});
