import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { onRedis } from "../../../../support/servers.ts";
import type { LockKeys } from "../../../../../src/drivers/redis/protocol/keys.ts";
import {
  acquireOf,
  requester,
  ScriptFixture,
  type ScriptReply,
  type Requester,
} from "../../../../support/script-fixture.ts";

onRedis("the queue of an acquire", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await fixture.listen(1);
  });
  afterAll(() => fixture.close());

  describe.each(["1", "2", "3", "4"] as const)("with wait %s", (wait) => {
    const queue = (keys: LockKeys, who: Requester): Promise<ScriptReply> =>
      fixture.queue(keys, who, { wait });

    test("a repeat by the holder returns its grant, and adds no queue entry", async () => {
      const keys = fixture.lock();
      const { first, last } = await fixture.grant(keys, requester(1));
      expect(await queue(keys, requester(1))).toEqual([1, first, last, requester(1).token]);
      expect(await fixture.redis.exists(keys[1])).toBe(0);
    });

    test("waiters are ordered by their tickets, not by arrival", async () => {
      const keys = fixture.lock();
      await fixture.grant(keys, requester(1));
      expect((await queue(keys, requester(2, { ticket: 20 })))[2]).toBe(0);
      expect((await queue(keys, requester(3, { ticket: 30 })))[2]).toBe(1);
      expect((await queue(keys, requester(4, { ticket: 10 })))[2]).toBe(0);
    });

    test("a repeated request keeps its queue entry and its score", async () => {
      const keys = fixture.lock();
      const waiter = requester(2, { ticket: 1_700_000_000_123_456 });
      await fixture.grant(keys, requester(1));
      await queue(keys, waiter);
      await queue(keys, requester(3, { ticket: 1_700_000_000_123_457 }));
      await fixture.redis.zadd(keys[1], "XX", 5, waiter.member); // a ZADD without NX would reset this score
      expect((await queue(keys, waiter))[2]).toBe(0);
      expect(await fixture.redis.zscore(keys[1], waiter.member)).toBe("5");
      expect(await fixture.redis.zcard(keys[1])).toBe(2);
    });

    test("a ticket is stored as a score to its last microsecond", async () => {
      const keys = fixture.lock();
      const waiter = requester(2, { ticket: 9_007_199_254_740_991 });
      await fixture.grant(keys, requester(1));
      await queue(keys, waiter);
      expect(await fixture.redis.zscore(keys[1], waiter.member)).toBe("9007199254740991");
    });

    test("each queued request extends the queue's TTL to a minute", async () => {
      const keys = fixture.lock();
      await fixture.grant(keys, requester(1));
      await queue(keys, requester(2));
      await fixture.redis.pexpire(keys[1], 1_000);
      await queue(keys, requester(2));
      expect(near(await fixture.redis.pttl(keys[1]), 60_000)).toBe(true);
    });

    test("the first three waiters get the holder's remaining TTL, and later waiters get the TTL only at a repeat", async () => {
      const keys = fixture.lock();
      await fixture.grant(keys, requester(1), { ttlMs: 30_000 });
      const left = [];
      for (const n of [2, 3, 4, 5]) {
        left.push(Number((await queue(keys, requester(n)))[1]));
      }
      expect(left.slice(0, 3).every((ms) => near(ms, 30_000))).toBe(true);
      expect(left[3]).toBe(-3);
      expect(near(Number((await queue(keys, requester(5)))[1]), 30_000)).toBe(true);
    });

    test("a full queue refuses a new waiter and stores no entry, unless the request releases a grant in the same call", async () => {
      const keys = fixture.lock();
      await fixture.grant(keys, requester(1));
      const bounded = (n: number) => fixture.run(keys, acquireOf(requester(n), { wait }), { bound: 2 });
      const waiters = [requester(2).member, requester(3).member];
      await bounded(2);
      await bounded(3);
      if (wait === "1" || wait === "2") {
        expect(await bounded(4)).toEqual([2]);
      } else {
        waiters.push(requester(4).member);
        expect(await bounded(4)).toMatchObject({ 0: 0, 2: 2, 3: requester(1).token });
      }
      expect(await fixture.redis.zrange(keys[1], "0", "-1")).toEqual(waiters);
      expect((await bounded(3))[2]).toBe(1);
    });
  });

  test.each(["alone in its call", "beside another operation"])(
    "a try on a free lock comes after every waiter, %s",
    async (where) => {
      const keys = fixture.lock();
      await fixture.redis.zadd(keys[1], 1, requester(1).member);
      const others = where === "alone in its call" ? [] : [[fixture.lock(), ["inspect"]] as const];
      const [answer = []] = await fixture.batch([[keys, acquireOf(requester(2))], ...others]);
      expect([answer[0], answer[2], answer[3]]).toEqual([0, -1, requester(1).token]);
      expect(near(Number(answer[1]), 3_000)).toBe(true);
      expect(await fixture.received(1)).toHaveLength(1);
      expect(await fixture.redis.exists(keys[1])).toBe(0);
    },
  );

  test("a request with the earliest ticket gets a free lock by reply, not by notification", async () => {
    const keys = fixture.lock();
    await fixture.redis.zadd(keys[1], 10, requester(1, { ticket: 10 }).member);
    const answer = await fixture.queue(keys, requester(2, { ticket: 9 }), { ttlMs: 30_000 });
    expect([answer[0], answer[3]]).toEqual([1, requester(2, { ticket: 9 }).token]);
    expect(near(await fixture.redis.pttl(keys[0]), 30_000)).toBe(true);
    expect(await fixture.redis.zrange(keys[1], "0", "-1")).toEqual([requester(1, { ticket: 10 }).member]);
    expect(await fixture.received(1)).toEqual([]);
  });

  test("a request with a later ticket is queued after the waiter that gets the free lock", async () => {
    const keys = fixture.lock();
    await fixture.redis.zadd(keys[1], 1, requester(1).member);
    const answer = await fixture.queue(keys, requester(2));
    expect([answer[0], answer[2], answer[3]]).toEqual([0, 0, requester(1).token]);
    expect(near(Number(answer[1]), 3_000)).toBe(true);
    expect(await fixture.received(1)).toHaveLength(1);
  });
});

function near(ms: number, wanted: number): boolean {
  return ms <= wanted && ms > wanted - 900;
}
