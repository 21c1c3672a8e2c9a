import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import type { LockKeys } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, requester, ScriptFixture } from "../../../../support/script-fixture.ts";

/** A process passes its lock to its next caller by one call: an acquire, then the release of the older token. */
onRedis("an acquire with the release of an older token of the same lock", () => {
  let fixture: ScriptFixture;
  let keys: LockKeys;
  const [old, next, other] = [
    requester(1, { client: 9 }),
    requester(2, { client: 9, ticket: 7 }),
    requester(3, { client: 8 }),
  ];

  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await fixture.listen(8);
    await fixture.listen(9);
  });
  afterAll(() => fixture.close());
  beforeEach(() => {
    keys = fixture.lock();
  });

  const requeue = (options: Parameters<typeof acquireOf>[1] = {}) =>
    fixture.batch([
      [keys, acquireOf(next, { wait: "4", ttlMs: 20_000, ...options })],
      [keys, ["release", old.token, "", "1"]],
    ]);

  test.each([1, 17])("gives the new token %i fencing numbers, without waiters", async (fencingCount) => {
    const { last } = await fixture.grant(keys, old, { fencingCount });
    const [acquired, released] = await requeue({ fencingCount });
    expect(released).toEqual([1, 0, ""]);
    expect(acquired).toEqual([1, expect.any(Number), expect.any(Number), next.token]);
    const numbers = await fixture.numbersOf(keys);
    expect(acquired?.slice(1, 3)).toEqual([numbers.first, numbers.last]);
    expect(numbers.first).toBeGreaterThan(last);
    expect(numbers.last - numbers.first + 1).toBe(fencingCount);
    expect(await fixture.counter()).toBe(numbers.last);
    expect(await fixture.holder(keys)).toBe(next.token);
    expect(await fixture.redis.pttl(keys[0])).toBeGreaterThan(15_000);
    expect(await fixture.redis.exists(keys[1], keys[2])).toBe(0);
    expect(await fixture.received(9)).toEqual([]);
  });

  test("removes the metadata of the older token", async () => {
    await fixture.grant(keys, old, { metadata: '["owner","a"]' });
    await requeue();
    expect(await fixture.holder(keys)).toBe(next.token);
    expect(await fixture.redis.exists(keys[2])).toBe(0);
  });

  test("grants the lock to a waiter of another process, and queues the new token", async () => {
    await fixture.grant(keys, old);
    await fixture.queue(keys, other);
    const [, released] = await requeue();
    expect(released?.[0]).toBe(1);
    expect(await fixture.holder(keys)).toBe(other.token);
    expect(await fixture.redis.zrange(keys[1], "0", "-1")).toEqual([next.member]);
    expect(await fixture.received(8)).toHaveLength(1);
  });

  test("changes nothing of a lock that another token holds, and queues the new token", async () => {
    await fixture.grant(keys, other);
    const [acquired, released] = await requeue();
    expect([acquired?.[0], released?.[0]]).toEqual([0, 0]);
    expect(await fixture.holder(keys)).toBe(other.token);
    expect(await fixture.redis.zrange(keys[1], "0", "-1")).toEqual([next.member]);
  });

  test("after its latest time releases the older token, and grants nothing", async () => {
    await fixture.grant(keys, old);
    const [acquired, released] = await requeue({ latest: 1 });
    expect(acquired).toEqual([4]);
    expect(released?.[0]).toBe(1);
    expect(await fixture.holder(keys)).toBeNull();
  });

  test("of the same token ends with its release", async () => {
    await fixture.grant(keys, old);
    const [, released] = await fixture.batch([
      [keys, acquireOf(old, { wait: "1" })],
      [keys, ["release", old.token, old.entryTail, "1"]],
    ]);
    expect(released?.[0]).toBe(1);
    expect(await fixture.redis.exists(...keys)).toBe(0);
  });

  test("for another kind of lock does not get the lock as a mutex", async () => {
    await fixture.grant(keys, old);
    const reader = requester(5, { client: 9, lockMode: "r" });
    await fixture.batch([
      [keys, acquireOf(reader, { wait: "1" })],
      [keys, ["release", old.token, "", "1"]],
    ]);
    expect(await fixture.redis.type(keys[0])).not.toBe("string");
  });

  test("respects a counter that is ahead of the time", async () => {
    await fixture.grant(keys, old);
    const ahead = Date.now() * 1_000 + 5_000_000;
    await fixture.redis.set("holdfast:fence", ahead);
    await requeue();
    expect(await fixture.holder(keys)).toBe(next.token);
    expect((await fixture.numbersOf(keys)).first).toBe(ahead + 1);
  });
});
