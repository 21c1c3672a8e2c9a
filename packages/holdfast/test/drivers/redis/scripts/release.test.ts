import { afterAll, beforeAll, expect, test } from "vitest";

import { onRedis } from "../../../support/servers.ts";
import { acquireOf, asker, ScriptStage, type Asker } from "./stage.ts";

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
    expect(await stage.redis.exists(keys[0], keys[1], keys[3])).toBe(0);
    expect(await stage.redis.exists(keys[2])).toBe(1);
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
      expect(await stage.ask(keys, releaseOf(other))).toEqual([0, 0, asker(1, { ticket: 5 }).token]);
    }
    expect(await stage.redis.get(keys[0])).toBe(asker(1, { ticket: 5 }).token);
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
    expect(await stage.redis.get(keys[0])).toBe(next.token);
    expect(await stage.redis.pttl(keys[0])).toBeLessThanOrEqual(2_000);
    expect(await stage.redis.exists(keys[1])).toBe(0);
    const { first, last } = await stage.redis.hgetall(keys[2]);
    expect(Number(last)).toBe(Number(first) + 2);
    expect(await stage.heard(2)).toHaveLength(1);
  });

  test("a release that finds the lock expired hands it to the next", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1));
    await stage.queue(keys, asker(2));
    await stage.redis.del(keys[0]);
    expect(await stage.ask(keys, releaseOf(asker(1)))).toEqual([0, 0, ""]);
    expect(await stage.redis.get(keys[0])).toBe(asker(2).token);
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
      expect(await stage.ask(keys, releaseOf(clone))).toEqual([0, 0, asker(1).token]);
    }
    expect(await stage.redis.get(keys[0])).toBe(asker(1).token);
  });

  test("a key of another type is not deleted", async () => {
    const keys = stage.lock();
    await stage.redis.lpush(keys[0], "a");
    expect((await stage.ask(keys, releaseOf(asker(1))))[0]).toBe("error");
    expect(await stage.redis.lrange(keys[0], 0, -1)).toEqual(["a"]);
  });

  test.each(["get", "zpopmin", "del"])(
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
      expect(await stage.redis.get(keys[0])).toBe(asker(1).token);
      expect(await stage.ask(keys, releaseOf(asker(1)))).toEqual([1, 0, ""]);
    },
  );
});

function releaseOf({ token, terms }: Asker): string[] {
  return ["release", token, terms];
}
