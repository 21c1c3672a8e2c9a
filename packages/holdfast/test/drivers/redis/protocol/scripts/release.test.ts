import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { onRedis } from "../../../../support/servers.ts";
import {
  acquireOf,
  requester,
  ScriptFixture,
  type ScriptReply,
  type Requester,
} from "../../../../support/script-fixture.ts";

onRedis("release", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await fixture.listen(2);
  });
  afterAll(() => fixture.close());

  test.each(["", requester(1).entryTail])(
    "the holder releases the lock with its metadata, with the queue entry '%s'",
    async (entryTail) => {
      const keys = fixture.lock();
      await fixture.grant(keys, requester(1), { metadata: '["owner","a"]' });
      const release = ["release", requester(1).token, entryTail, "1"];
      expect(await fixture.run(keys, release)).toEqual([1, 0, ""]);
      expect(await fixture.redis.exists(...keys)).toBe(0);
    },
  );

  test("a second release is refused as not held, and changes nothing", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1));
    await fixture.run(keys, releaseOf(requester(1)));
    expect(await fixture.run(keys, releaseOf(requester(1)))).toEqual([0, 0, ""]);
  });

  test("a lock of another client is left alone: the whole token is compared", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, { ticket: 5 }));
    for (const other of [requester(1, { ticket: 6 }), requester(1, { ticket: 5, client: 9 }), requester(9)]) {
      expect(await fixture.run(keys, releaseOf(other, "0"))).toEqual([
        0,
        0,
        requester(1, { ticket: 5 }).token,
      ]);
      expect(await fixture.run(keys, releaseOf(other))).toMatchObject({
        0: 0,
        2: requester(1, { ticket: 5 }).token,
      });
    }
    expect(await fixture.holder(keys)).toBe(requester(1, { ticket: 5 }).token);
  });

  test("a waiter leaves the queue, and no other entry does", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1));
    await fixture.queue(keys, requester(2));
    await fixture.queue(keys, requester(3));
    expect(await fixture.run(keys, releaseOf(requester(2)))).toEqual([0, 0, requester(1).token]);
    expect(await fixture.redis.zrange(keys[1], "0", "-1")).toEqual([requester(3).member]);
  });

  test("a waiter of another kind stays queued", async () => {
    const keys = fixture.lock();
    const other = requester(2, { lockMode: "r" });
    await fixture.grant(keys, requester(1));
    await fixture.redis.zadd(keys[1], 2, other.member);
    const answer = await fixture.run(keys, releaseOf(requester(1)));
    expect(answer).toEqual(["error", expect.stringContaining("KINDMISMATCH")]);
    expect(await fixture.redis.zrange(keys[1], "0", "-1")).toEqual([other.member]);
  });

  test("the next waiter holds the lock in the same step, with the values of its entry", async () => {
    const keys = fixture.lock();
    const next = requester(2, { ttlMs: 2_000, fencingCount: 3 });
    await fixture.grant(keys, requester(1), { ttlMs: 60_000 });
    await fixture.queue(keys, next, { ttlMs: 60_000, fencingCount: 3 });
    expect(await fixture.run(keys, releaseOf(requester(1)))).toEqual([1, 0, ""]);
    expect(await fixture.holder(keys)).toBe(next.token);
    expect(await fixture.redis.pttl(keys[0])).toBeLessThanOrEqual(2_000);
    expect(await fixture.redis.exists(keys[1])).toBe(0);
    const { first, last } = await fixture.numbersOf(keys);
    expect(last).toBe(first + 2);
    expect(await fixture.received(2)).toHaveLength(1);
  });

  test("a release that finds the lock expired grants it to the next waiter", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1));
    await fixture.queue(keys, requester(2));
    await fixture.redis.del(keys[0]);
    expect(await fixture.run(keys, releaseOf(requester(1)))).toEqual([0, 0, ""]);
    expect(await fixture.holder(keys)).toBe(requester(2).token);
    expect(await fixture.received(2)).toHaveLength(1);
  });

  test("a release without waiters does not hide the waiters of the next operation in the call", async () => {
    const [alone, awaited] = [fixture.lock(), fixture.lock()];
    await fixture.grant(alone, requester(1));
    await fixture.redis.zadd(awaited[1], 2, requester(2).member);
    const answers = await fixture.batch([
      [alone, releaseOf(requester(1))],
      [awaited, acquireOf(requester(3), { wait: "1" })],
    ]);
    expect(answers).toMatchObject([[1, 0, ""], { 0: 0, 2: 0, 3: requester(2).token }]);
    expect(await fixture.redis.zrange(awaited[1], "0", "-1")).toEqual([requester(3).member]);
    expect(await fixture.received(2)).toHaveLength(1);
  });

  test("a grant with the same random part but another client or ticket is left alone", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1));
    for (const clone of [requester(1, { client: 9 }), requester(1, { ticket: 5 })]) {
      expect(await fixture.run(keys, releaseOf(clone))).toMatchObject({ 0: 0, 2: requester(1).token });
    }
    expect(await fixture.holder(keys)).toBe(requester(1).token);
  });

  test("a token that is a prefix or an extension of the holder's is another token", async () => {
    for (const ticket of [123, 12_345]) {
      const keys = fixture.lock();
      await fixture.grant(keys, requester(1, { ticket }));
      const other = requester(1, { ticket: 1_234 });
      expect((await fixture.run(keys, releaseOf(other, "0"))).slice(0, 3)).toEqual([
        0,
        0,
        requester(1, { ticket }).token,
      ]);
      expect(await fixture.holder(keys)).toBe(requester(1, { ticket }).token);
    }
  });

  test.each([
    ["del", '["owner","a"]'],
    ["set", ""],
    ["get", ""],
  ])("a user without the right to %s loses no waiter", async (command, metadata) => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1), { metadata });
    await fixture.queue(keys, requester(2));
    await fixture.redis.call("ACL", "SETUSER", "default", `-${command}`);
    try {
      expect((await fixture.run(keys, releaseOf(requester(1))))[0]).toBe("error");
    } finally {
      await fixture.redis.call("ACL", "SETUSER", "default", `+${command}`);
    }
    expect(await fixture.redis.zrange(keys[1], "0", "-1")).toEqual([requester(2).member]);
    expect(await fixture.received(2)).toEqual([]);
  });

  describe("with a next holder of the same client", () => {
    const mine = requester(3, { client: 1, ttlMs: 2_000, fencingCount: 3 });
    const next = { ...mine, entryTail: mine.entryTail.replace(/\d+$/, "50000") };

    test("the reply is its grant, with the TTL of a reply, and no notification is sent", async () => {
      await fixture.listen(1);
      const keys = fixture.lock();
      await fixture.grant(keys, requester(1), { metadata: '["owner","a"]' });
      await fixture.queue(keys, next, { fencingCount: 3 });
      const answer = await fixture.run(keys, releaseOf(requester(1)));
      const { first, last } = await fixture.numbersOf(keys);
      expect(answer).toEqual([1, 0, next.token, first, last, 50_000]);
      expect([last, await fixture.holder(keys)]).toEqual([first + 2, next.token]);
      expect(await fixture.redis.pttl(keys[0])).toBeGreaterThan(49_000);
      expect(await fixture.redis.exists(keys[1], keys[2])).toBe(0);
      expect(await fixture.received(1)).toEqual([]);
    });

    test("a repeat returns the grant again, with the same numbers and its remaining TTL", async () => {
      await fixture.listen(1);
      const keys = fixture.lock();
      await fixture.grant(keys, requester(1));
      await fixture.queue(keys, next);
      const [, , token, first, last] = await fixture.run(keys, releaseOf(requester(1)));
      await fixture.redis.pexpire(keys[0], 7_000);
      const again = await fixture.run(keys, releaseOf(requester(1)));
      expect(again.slice(0, 5)).toEqual([0, 0, token, first, last]);
      expect(Number(again[5])).toBeGreaterThan(6_000);
      expect(Number(again[5])).toBeLessThanOrEqual(7_000);
      expect(await fixture.received(1)).toEqual([]);
    });

    test("the grant is notified if the token was not the caller's own, also by a repeat", async () => {
      await fixture.listen(1);
      const keys = fixture.lock();
      await fixture.grant(keys, requester(1));
      await fixture.queue(keys, next);
      expect(await fixture.run(keys, releaseOf(requester(1), "0"))).toEqual([1, 0, ""]);
      const [message = "", ...more] = await fixture.received(1);
      expect(message.split(" ").slice(0, 2)).toEqual(["grant", next.token]);
      expect(more).toEqual([]);
      expect(await fixture.redis.pttl(keys[0])).toBeLessThanOrEqual(2_000);
      expect(await fixture.run(keys, releaseOf(requester(1), "0"))).toEqual([0, 0, next.token]);
    });

    test("the next holder needs no subscription, and a waiter past its deadline is skipped", async () => {
      const keys = fixture.lock();
      const [late, mute] = [requester(4, { client: 77, deadline: 1 }), requester(5, { client: 77 })];
      await fixture.grant(keys, requester(9, { client: 77 }));
      await fixture.queue(keys, late);
      await fixture.queue(keys, mute);
      const [released, , token] = await fixture.run(keys, releaseOf(requester(9, { client: 77 })));
      expect([released, token]).toEqual([1, mute.token]);
      expect(await fixture.holder(keys)).toBe(mute.token);
    });

    test("another client before it is notified, and the reply names no holder", async () => {
      const keys = fixture.lock();
      await fixture.grant(keys, requester(1));
      await fixture.queue(keys, requester(2));
      await fixture.queue(keys, next);
      expect(await fixture.run(keys, releaseOf(requester(1)))).toEqual([1, 0, ""]);
      expect(await fixture.received(2)).toHaveLength(1);
      expect(await fixture.run(keys, releaseOf(requester(1)))).toEqual([0, 0, requester(2).token]);
    });

    test("the next operation of the call sends notifications again", async () => {
      await fixture.listen(1);
      const [own, other] = [fixture.lock(), fixture.lock()];
      await fixture.grant(own, requester(1));
      await fixture.queue(own, next);
      await fixture.redis.zadd(other[1], 3, next.member);
      const [, answer] = await fixture.batch([
        [own, releaseOf(requester(1))],
        [other, acquireOf(requester(8))],
      ]);
      expect(answer).toMatchObject({ 0: 0, 3: next.token });
      expect(await fixture.received(1)).toHaveLength(1);
    });

    test("an acquire past the queue's bound and a release, in one call, let other waiters have their turn", async () => {
      await fixture.listen(1);
      const keys = fixture.lock();
      await fixture.grant(keys, requester(1));
      await fixture.queue(keys, requester(2));
      const turn = (): Promise<ScriptReply[]> =>
        fixture.batch(
          [
            [keys, acquireOf(next, { wait: "3" })],
            [keys, releaseOf(requester(1))],
          ],
          { bound: 0 },
        );
      const [queued, released] = await turn();
      expect(queued).toMatchObject({ 0: 0, 2: 1, 3: requester(1).token });
      expect(released).toEqual([1, 0, ""]);
      expect(await fixture.received(2)).toHaveLength(1);
      const [again, repeated] = await turn();
      expect(again).toMatchObject({ 0: 0, 2: 0, 3: requester(2).token });
      expect(repeated).toEqual([0, 0, requester(2).token]);
      expect(await fixture.run(keys, releaseOf(requester(2)))).toEqual([1, 0, ""]);
      expect(await fixture.received(1)).toHaveLength(1);
      expect(await fixture.run(keys, releaseOf(requester(1)))).toMatchObject({ 0: 0, 2: next.token });
    });
  });

  test("a key of another type is not deleted", async () => {
    const keys = fixture.lock();
    await fixture.redis.lpush(keys[0], "a");
    expect((await fixture.run(keys, releaseOf(requester(1))))[0]).toBe("error");
    expect(await fixture.redis.lrange(keys[0], 0, -1)).toEqual(["a"]);
  });

  test.each(["getrange", "zpopmin", "del"])(
    "a user without the right to %s keeps the lock, and gets an error",
    async (command) => {
      const keys = fixture.lock();
      await fixture.grant(keys, requester(1));
      await fixture.redis.call("ACL", "SETUSER", "default", `-${command}`);
      try {
        const answer = await fixture.run(keys, releaseOf(requester(1)));
        expect(answer).toEqual(["error", expect.stringMatching(/^NOPERM |can't run this command/)]);
      } finally {
        await fixture.redis.call("ACL", "SETUSER", "default", `+${command}`);
      }
      expect(await fixture.holder(keys)).toBe(requester(1).token);
      expect(await fixture.run(keys, releaseOf(requester(1)))).toEqual([1, 0, ""]);
    },
  );
});

function releaseOf({ token, entryTail }: Requester, isOwn: "0" | "1" = "1"): string[] {
  return ["release", token, entryTail, isOwn];
}
