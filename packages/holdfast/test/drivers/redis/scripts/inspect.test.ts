import { afterAll, beforeAll, expect, test } from "vitest";

import { readFields } from "../../../../src/drivers/redis/words.ts";
import { onRedis } from "../../../support/servers.ts";
import { asker, ScriptStage } from "./stage.ts";

onRedis("inspect", () => {
  let stage: ScriptStage;
  beforeAll(async () => {
    stage = await ScriptStage.open();
  });
  afterAll(() => stage.close());

  test("a lock that never was", async () => {
    expect(await stage.ask(stage.lock(), ["inspect"])).toEqual(["", -2, "", "", [], 0, []]);
  });

  test("who holds it, how long, its numbers, its words, and who waits in which order", async () => {
    const keys = stage.lock();
    const { first, last } = await stage.grant(keys, asker(1), {
      want: 3,
      ttlMs: 20_000,
      words: '["owner","a"]',
    });
    await stage.queue(keys, asker(3));
    await stage.queue(keys, asker(2));
    const [holder, left, one, other, words, ...queue] = await stage.ask(keys, ["inspect"]);
    expect(holder).toBe(asker(1).token);
    expect(left).toBeGreaterThan(19_000);
    expect(left).toBeLessThanOrEqual(20_000);
    expect([one, other]).toEqual([String(first), String(last)]);
    expect(readFields(words)).toEqual(
      new Map([
        ["token", asker(1).token],
        ["owner", "a"],
      ]),
    );
    expect(queue).toEqual([2, [asker(2).member, asker(3).member]]);
  });

  test("the numbers of the newest grant are told after its end, to the last digit", async () => {
    const keys = stage.lock();
    await stage.redis.hset(keys[2], "last", "9007199254740100");
    await stage.grant(keys, asker(1), { want: 2 });
    await stage.ask(keys, ["release", asker(1).token, ""]);
    const facts = await stage.ask(keys, ["inspect"]);
    expect(facts).toEqual(["", -2, "9007199254740101", "9007199254740102", [], 0, []]);
  });

  test("words of another grant are not told", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1), { words: '["owner","a"]' });
    await stage.redis.set(keys[0], asker(2).token);
    expect((await stage.ask(keys, ["inspect"]))[4]).toEqual([]);
    await stage.redis.del(keys[0]);
    expect((await stage.ask(keys, ["inspect"]))[4]).toEqual([]);
  });

  test("of a long queue the first hundred are told, and how many there are", async () => {
    const keys = stage.lock();
    const members = Array.from({ length: 150 }, (_, n) => asker(1_000 + n).member);
    await stage.redis.zadd(keys[1], ...members.flatMap((member, n) => [n, member]));
    const [, , , , , count, first] = await stage.ask(keys, ["inspect"]);
    expect([count, first]).toEqual([150, members.slice(0, 100)]);
  });

  test("looking changes nothing: a free lock with waiters stays free", async () => {
    const keys = stage.lock();
    await stage.redis.zadd(keys[1], 1, asker(1).member);
    await stage.ask(keys, ["inspect"]);
    expect(await stage.redis.exists(keys[0])).toBe(0);
    expect(await stage.redis.zcard(keys[1])).toBe(1);
  });

  test("keys of another type are an error", async () => {
    for (const wrong of [0, 1, 2, 3] as const) {
      const keys = stage.lock();
      await stage.redis.lpush(keys[wrong], "a");
      expect((await stage.ask(keys, ["inspect"]))[0]).toBe("error");
    }
  });
});
