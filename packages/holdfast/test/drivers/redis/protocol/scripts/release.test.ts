import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { onRedis } from "../../../../support/servers.ts";
import {
  acquireOf,
  asker,
  ScriptStage,
  type Answer,
  type Asker,
} from "../../../../support/script-fixture.ts";

onRedis("release", () => {
  let stage: ScriptStage;
  beforeAll(async () => {
    stage = await ScriptStage.open();
    await stage.listen(2);
  });
  afterAll(() => stage.close());

  test("the holder gives the lock back, with its words", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1), { words: '["owner","a"]' });
    expect(await stage.ask(keys, releaseOf(asker(1)))).toEqual([1, 0, ""]);
    expect(await stage.redis.exists(...keys)).toBe(0);
  });

  test("a second release is told that it is not ours, and changes nothing", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1));
    await stage.ask(keys, releaseOf(asker(1)));
    expect(await stage.ask(keys, releaseOf(asker(1)))).toEqual([0, 0, ""]);
  });

  test("a lock of another is left alone: the whole token is compared", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, { ticket: 5 }));
    for (const other of [asker(1, { ticket: 6 }), asker(1, { ticket: 5, client: 9 }), asker(9)]) {
      expect(await stage.ask(keys, releaseOf(other, "0"))).toEqual([0, 0, asker(1, { ticket: 5 }).token]);
      expect(await stage.ask(keys, releaseOf(other))).toMatchObject({
        0: 0,
        2: asker(1, { ticket: 5 }).token,
      });
    }
    expect(await stage.holder(keys)).toBe(asker(1, { ticket: 5 }).token);
  });

  test("a waiter leaves the queue, and only it does", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1));
    await stage.queue(keys, asker(2));
    await stage.queue(keys, asker(3));
    expect(await stage.ask(keys, releaseOf(asker(2)))).toEqual([0, 0, asker(1).token]);
    expect(await stage.redis.zrange(keys[1], "0", "-1")).toEqual([asker(3).member]);
  });

  test("a waiter of another kind stays where it is", async () => {
    const keys = stage.lock();
    const other = asker(2, { share: "r" });
    await stage.grant(keys, asker(1));
    await stage.redis.zadd(keys[1], 2, other.member);
    const answer = await stage.ask(keys, releaseOf(asker(1)));
    expect(answer).toEqual(["error", expect.stringContaining("KINDMISMATCH")]);
    expect(await stage.redis.zrange(keys[1], "0", "-1")).toEqual([other.member]);
  });

  test("the next waiter holds the lock in the same step, for what its member says", async () => {
    const keys = stage.lock();
    const next = asker(2, { ttlMs: 2_000, want: 3 });
    await stage.grant(keys, asker(1), { ttlMs: 60_000 });
    await stage.queue(keys, next, { ttlMs: 60_000, want: 3 });
    expect(await stage.ask(keys, releaseOf(asker(1)))).toEqual([1, 0, ""]);
    expect(await stage.holder(keys)).toBe(next.token);
    expect(await stage.redis.pttl(keys[0])).toBeLessThanOrEqual(2_000);
    expect(await stage.redis.exists(keys[1])).toBe(0);
    const { first, last } = await stage.numbersOf(keys);
    expect(last).toBe(first + 2);
    expect(await stage.heard(2)).toHaveLength(1);
  });

  test("a release that finds the lock expired hands it to the next", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1));
    await stage.queue(keys, asker(2));
    await stage.redis.del(keys[0]);
    expect(await stage.ask(keys, releaseOf(asker(1)))).toEqual([0, 0, ""]);
    expect(await stage.holder(keys)).toBe(asker(2).token);
    expect(await stage.heard(2)).toHaveLength(1);
  });

  test("a release for which nobody waits does not hide the waiters of the next operation in the call", async () => {
    const [alone, awaited] = [stage.lock(), stage.lock()];
    await stage.grant(alone, asker(1));
    await stage.redis.zadd(awaited[1], 2, asker(2).member);
    const answers = await stage.batch([
      [alone, releaseOf(asker(1))],
      [awaited, acquireOf(asker(3), { wait: "1" })],
    ]);
    expect(answers).toMatchObject([[1, 0, ""], { 0: 0, 2: 0, 3: asker(2).token }]);
    expect(await stage.redis.zrange(awaited[1], "0", "-1")).toEqual([asker(3).member]);
    expect(await stage.heard(2)).toHaveLength(1);
  });

  test("the same random part does not make another client's grant, or another ticket's, ours", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1));
    for (const clone of [asker(1, { client: 9 }), asker(1, { ticket: 5 })]) {
      expect(await stage.ask(keys, releaseOf(clone))).toMatchObject({ 0: 0, 2: asker(1).token });
    }
    expect(await stage.holder(keys)).toBe(asker(1).token);
  });

  test("a token that ours begins with, or that begins with ours, is another's", async () => {
    for (const ticket of [123, 12_345]) {
      const keys = stage.lock();
      await stage.grant(keys, asker(1, { ticket }));
      const other = asker(1, { ticket: 1_234 });
      expect((await stage.ask(keys, releaseOf(other, "0"))).slice(0, 3)).toEqual([
        0,
        0,
        asker(1, { ticket }).token,
      ]);
      expect(await stage.holder(keys)).toBe(asker(1, { ticket }).token);
    }
  });

  test.each([
    ["del", '["owner","a"]'],
    ["set", ""],
    ["get", ""],
  ])("who may not %s while somebody waits eats no place", async (command, words) => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1), { words });
    await stage.queue(keys, asker(2));
    await stage.redis.call("ACL", "SETUSER", "default", `-${command}`);
    try {
      expect((await stage.ask(keys, releaseOf(asker(1))))[0]).toBe("error");
    } finally {
      await stage.redis.call("ACL", "SETUSER", "default", `+${command}`);
    }
    expect(await stage.redis.zrange(keys[1], "0", "-1")).toEqual([asker(2).member]);
    expect(await stage.heard(2)).toEqual([]);
  });

  describe("where the next holder is of the same client", () => {
    const mine = asker(3, { client: 1, ttlMs: 2_000, want: 3 });
    const next = { ...mine, terms: mine.terms.replace(/\d+$/, "50000") };

    test("the answer is its grant, for the TTL of a reply, and no message is sent", async () => {
      await stage.listen(1);
      const keys = stage.lock();
      await stage.grant(keys, asker(1), { words: '["owner","a"]' });
      await stage.queue(keys, next, { want: 3 });
      const answer = await stage.ask(keys, releaseOf(asker(1)));
      const { first, last } = await stage.numbersOf(keys);
      expect(answer).toEqual([1, 0, next.token, first, last, 50_000]);
      expect([last, await stage.holder(keys)]).toEqual([first + 2, next.token]);
      expect(await stage.redis.pttl(keys[0])).toBeGreaterThan(49_000);
      expect(await stage.redis.exists(keys[1], keys[2])).toBe(0);
      expect(await stage.heard(1)).toEqual([]);
    });

    test("a repeat names it again, with the same numbers and what is left of its TTL", async () => {
      await stage.listen(1);
      const keys = stage.lock();
      await stage.grant(keys, asker(1));
      await stage.queue(keys, next);
      const [, , token, first, last] = await stage.ask(keys, releaseOf(asker(1)));
      await stage.redis.pexpire(keys[0], 7_000);
      const again = await stage.ask(keys, releaseOf(asker(1)));
      expect(again.slice(0, 5)).toEqual([0, 0, token, first, last]);
      expect(Number(again[5])).toBeGreaterThan(6_000);
      expect(Number(again[5])).toBeLessThanOrEqual(7_000);
      expect(await stage.heard(1)).toEqual([]);
    });

    test("it is sent the message where the token was not the caller's own, also by a repeat", async () => {
      await stage.listen(1);
      const keys = stage.lock();
      await stage.grant(keys, asker(1));
      await stage.queue(keys, next);
      expect(await stage.ask(keys, releaseOf(asker(1), "0"))).toEqual([1, 0, ""]);
      const [message = "", ...more] = await stage.heard(1);
      expect(message.split(" ").slice(0, 2)).toEqual(["grant", next.token]);
      expect(more).toEqual([]);
      expect(await stage.redis.pttl(keys[0])).toBeLessThanOrEqual(2_000);
      expect(await stage.ask(keys, releaseOf(asker(1), "0"))).toEqual([0, 0, next.token]);
    });

    test("it need not listen; and one past its deadline is passed over", async () => {
      const keys = stage.lock();
      const [late, mute] = [asker(4, { client: 77, deadline: 1 }), asker(5, { client: 77 })];
      await stage.grant(keys, asker(9, { client: 77 }));
      await stage.queue(keys, late);
      await stage.queue(keys, mute);
      const [released, , token] = await stage.ask(keys, releaseOf(asker(9, { client: 77 })));
      expect([released, token]).toEqual([1, mute.token]);
      expect(await stage.holder(keys)).toBe(mute.token);
    });

    test("another client before it is told by a message, and the answer names nobody", async () => {
      const keys = stage.lock();
      await stage.grant(keys, asker(1));
      await stage.queue(keys, asker(2));
      await stage.queue(keys, next);
      expect(await stage.ask(keys, releaseOf(asker(1)))).toEqual([1, 0, ""]);
      expect(await stage.heard(2)).toHaveLength(1);
      expect(await stage.ask(keys, releaseOf(asker(1)))).toEqual([0, 0, asker(2).token]);
    });

    test("the next operation of the call sends messages again", async () => {
      await stage.listen(1);
      const [own, other] = [stage.lock(), stage.lock()];
      await stage.grant(own, asker(1));
      await stage.queue(own, next);
      await stage.redis.zadd(other[1], 3, next.member);
      const [, answer] = await stage.batch([
        [own, releaseOf(asker(1))],
        [other, acquireOf(asker(8))],
      ]);
      expect(answer).toMatchObject({ 0: 0, 3: next.token });
      expect(await stage.heard(1)).toHaveLength(1);
    });

    test("an acquire that is past the queue's bound and a release, in one call, give the others their turn", async () => {
      await stage.listen(1);
      const keys = stage.lock();
      await stage.grant(keys, asker(1));
      await stage.queue(keys, asker(2));
      const turn = (): Promise<Answer[]> =>
        stage.batch(
          [
            [keys, acquireOf(next, { wait: "3" })],
            [keys, releaseOf(asker(1))],
          ],
          { bound: 0 },
        );
      const [queued, released] = await turn();
      expect(queued).toMatchObject({ 0: 0, 2: 1, 3: asker(1).token });
      expect(released).toEqual([1, 0, ""]);
      expect(await stage.heard(2)).toHaveLength(1);
      const [again, repeated] = await turn();
      expect(again).toMatchObject({ 0: 0, 2: 0, 3: asker(2).token });
      expect(repeated).toEqual([0, 0, asker(2).token]);
      expect(await stage.ask(keys, releaseOf(asker(2)))).toEqual([1, 0, ""]);
      expect(await stage.heard(1)).toHaveLength(1);
      expect(await stage.ask(keys, releaseOf(asker(1)))).toMatchObject({ 0: 0, 2: next.token });
    });
  });

  test("a key of another type is not deleted", async () => {
    const keys = stage.lock();
    await stage.redis.lpush(keys[0], "a");
    expect((await stage.ask(keys, releaseOf(asker(1))))[0]).toBe("error");
    expect(await stage.redis.lrange(keys[0], 0, -1)).toEqual(["a"]);
  });

  test.each(["getrange", "zpopmin", "del"])(
    "who may not %s keeps what he has, and is told so",
    async (command) => {
      const keys = stage.lock();
      await stage.grant(keys, asker(1));
      await stage.redis.call("ACL", "SETUSER", "default", `-${command}`);
      try {
        const answer = await stage.ask(keys, releaseOf(asker(1)));
        expect(answer).toEqual(["error", expect.stringMatching(/^NOPERM |can't run this command/)]);
      } finally {
        await stage.redis.call("ACL", "SETUSER", "default", `+${command}`);
      }
      expect(await stage.holder(keys)).toBe(asker(1).token);
      expect(await stage.ask(keys, releaseOf(asker(1)))).toEqual([1, 0, ""]);
    },
  );
});

function releaseOf({ token, terms }: Asker, isOwn: "0" | "1" = "1"): string[] {
  return ["release", token, terms, isOwn];
}
