import { manualClock } from "holdfast/testing";
import { describe, expect, test } from "vitest";

import { decideAcquire } from "../../../src/drivers/nacos/acquire.ts";
import { changed, dataIdOf, encodeDocument, newDocument } from "../../../src/drivers/nacos/document.ts";
import type { Grant, LockDocument } from "../../../src/drivers/nacos/document.ts";
import { Observations } from "../../../src/drivers/nacos/observations.ts";
import { ServerTime } from "../../../src/drivers/nacos/server-time.ts";

const start = 1_700_000_000_000;
const attempt = {
  key: "k",
  token: "mine",
  lockMode: undefined,
  ttlMs: 10_000,
  waitMs: 60_000,
  ticket: undefined,
  entryTtlMs: 4_000,
  owner: "owner",
  reason: undefined,
  labels: undefined,
};
const grant: Grant = {
  token: "other",
  fencingToken: 8,
  ttlMs: 10_000,
  version: "v1",
  at: start,
  client: "c",
  owner: "other",
};
const free = newDocument("k", { id: "w0", at: start }, 7);
const held: LockDocument = { ...free, grant, fencingToken: 8 };

/** One process, which sees documents at the times of its clock. */
function observer(maxClockDifferenceMs = 60_000): {
  clock: ReturnType<typeof manualClock>;
  see: (
    document: LockDocument,
    options?: { token?: string; readAt?: number; isSettled?: boolean },
  ) => ReturnType<typeof decideAcquire>;
} {
  const clock = manualClock();
  const observations = new Observations(clock, maxClockDifferenceMs);
  return {
    clock,
    see: (document, { token = "mine", readAt, isSettled = false } = {}) => {
      const turn = observations.observe({ document, md5: "m", isFresh: true, readAt });
      const stamp = { id: `w${clock.now()}`, at: null };
      return decideAcquire({ ...attempt, token }, document, { turn, stamp, client: "d", isSettled });
    },
  };
}

describe("a request for a lock", () => {
  test("is granted after the grant was seen unchanged for its TTL and the drift of clocks", async () => {
    const { clock, see } = observer();
    const waiting = see(held).next as LockDocument;
    expect(waiting.queue).toMatchObject([{ token: "mine", ticket: 1 }]);
    await clock.advance(10_101);
    expect(see(waiting).result).toMatchObject({ outcome: "queued", position: 0, remainingMs: 1 });
    await clock.advance(1);
    expect(see(waiting)).toMatchObject({
      result: { outcome: "granted", fencingToken: 9n, ttlMs: 10_000 },
      next: { grant: { token: "mine", client: "d" }, queue: [], fencingToken: 9 },
    });
  });

  test("waits again for the whole TTL after an extension", async () => {
    const { clock, see } = observer();
    see(held);
    await clock.advance(10_000);
    const extended = { ...held, grant: { ...grant, version: "v2" } };
    expect(see(extended).result).toMatchObject({ outcome: "queued" });
    await clock.advance(10_000);
    expect(see(extended).result).toMatchObject({ outcome: "queued", remainingMs: 102 });
  });

  test("waits no longer because waiters come and go", async () => {
    const { clock, see } = observer();
    let document = see(held).next as LockDocument;
    for (let waiter = 0; waiter < 10; waiter += 1) {
      document = see(document, { token: `waiter ${waiter}` }).next as LockDocument;
      await clock.advance(1_011);
    }
    expect(see(document).result).toMatchObject({ outcome: "granted" });
  });

  test("passes over waiters that do not take a free lock, one waiter after the other", async () => {
    const { clock, see } = observer();
    const entries = ["dead", "also dead", "mine", "next"].map((token, index) => ({
      token,
      ticket: index + 1,
      owner: token,
    }));
    const document = { ...free, ticket: 4, queue: entries };
    expect(see(document).result).toMatchObject({ outcome: "queued", position: 2 });
    await clock.advance(4_500);
    expect(see(document).result).toMatchObject({ outcome: "queued", position: 2 });
    await clock.advance(1);
    expect(see(document, { token: "next" }).result).toMatchObject({ outcome: "queued", position: 3 });
    expect(see(document)).toMatchObject({
      result: { outcome: "granted" },
      next: { queue: [{ token: "next" }] },
    });
  });

  test("passes over dead waiters although further ones arrive", async () => {
    const { clock, see } = observer();
    let document: LockDocument = { ...free, ticket: 1, queue: [{ token: "dead", ticket: 1, owner: "dead" }] };
    document = see(document).next as LockDocument;
    for (let second = 0; second < 5; second += 1) {
      document = see(document, { token: `waiter ${second}` }).next as LockDocument;
      await clock.advance(1_000);
    }
    expect(see(document).result).toMatchObject({ outcome: "granted" });
  });

  test("with a ticket gets its old place again", () => {
    const { see } = observer();
    const queue = [{ token: "later", ticket: 5, owner: "later" }];
    const document = { ...held, ticket: 5, queue };
    const turn = { remainingMs: 100, idleMs: 0 };
    const again = decideAcquire({ ...attempt, ticket: "3" }, document, {
      turn,
      stamp: { id: "w1", at: null },
      client: "d",
      isSettled: false,
    });
    expect(again.result).toMatchObject({ outcome: "queued", ticket: "3", position: 0 });
    expect(again.next?.queue.map(({ token }) => token)).toEqual(["mine", "later"]);
    expect(see(document).result).toMatchObject({ ticket: "6", position: 1 });
  });

  test("by the server's clock gets a lock that expired long ago, and passes over its dead waiters", () => {
    const queue = [{ token: "dead", ticket: 1, owner: "dead" }];
    const document = { ...held, ticket: 1, queue };
    const limit = start + 10_000 + 60_000;
    expect(observer().see(document, { readAt: limit }).result).toMatchObject({ outcome: "queued" });
    expect(observer().see(document, { readAt: limit + 1 }).result).toMatchObject({ outcome: "granted" });
    const untimed = { ...document, at: null, grant: { ...grant, at: null } };
    expect(observer().see(untimed, { readAt: limit * 2 }).result).toMatchObject({ outcome: "queued" });
  });

  test("whose caller has its result is not granted, and leaves the queue", () => {
    const isSettled = true;
    expect(observer().see(free, { isSettled })).toMatchObject({ result: { outcome: "held", grant: null } });
    expect(observer().see(held, { isSettled })).toEqual({ result: { outcome: "held", grant, position: 0 } });
    const queued = { ...free, queue: [{ token: "mine", ticket: 1, owner: "owner" }] };
    expect(observer().see(queued, { isSettled }).next).toMatchObject({ grant: null, queue: [] });
  });

  test("finds its own grant, and extends the grant without shortening it", () => {
    const own = { ...held, grant: { ...grant, token: "mine", ttlMs: 30_000 } };
    expect(observer().see(own)).toMatchObject({
      result: { outcome: "granted", fencingToken: 8n, ttlMs: 30_000 },
      next: { grant: { fencingToken: 8, version: "w0", client: "d" } },
    });
  });
});

describe("the time of the servers", () => {
  test("is never early: after a sleep, and after a step of the wall clock back", () => {
    const clock = manualClock({ wall: start });
    const time = new ServerTime(clock);
    expect(time.now()).toBeUndefined();
    time.learn(start, { now: clock.now(), wall: clock.wall() });
    expect(time.now()).toBe(start + 1_000);
    clock.sleep(60_000);
    expect(time.now()).toBe(start + 61_000);
    time.learn(start, { now: clock.now(), wall: clock.wall() });
    clock.jumpWall(-500_000);
    clock.block(2_000);
    expect(time.now()).toBe(start + 3_000);
  });
});

describe("the content of a configuration", () => {
  test("is ASCII, and read without a change", () => {
    const document = changed(held, { key: "Schlüssel 😀" }, { id: "w1", at: start });
    const content = encodeDocument(document);
    expect(content).toMatch(/^[ -~]+$/);
    expect(JSON.parse(content)).toEqual(document);
  });

  test("has a name of allowed characters, which differs for each key", () => {
    const keys = [
      "a",
      "A",
      "_",
      ".",
      "a.b",
      "cipher-x",
      "ü",
      "x".repeat(150),
      "x".repeat(151),
      "x".repeat(512),
    ];
    const names = keys.map(dataIdOf);
    expect(new Set(names).size).toBe(keys.length);
    expect(names.every((name) => /^lock\.[a-z0-9_.-]{1,250}$/.test(name))).toBe(true);
  });
});
