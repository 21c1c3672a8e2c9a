import { afterAll, beforeAll, expect, test } from "vitest";

import { decodeHash } from "../../../../../src/drivers/redis/protocol/metadata.ts";
import { onRedis } from "../../../../support/servers.ts";
import { asker, ScriptStage } from "../../../../support/script-fixture.ts";

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
    expect(decodeHash(words)).toEqual(
      new Map([
        ["token", asker(1).token],
        ["owner", "a"],
      ]),
    );
    expect(queue).toEqual([2, [asker(2).member, asker(3).member]]);
  });

  test("of a lock that was given back nothing is told, and no number", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1), { want: 2, words: '["owner","a"]' });
    await stage.ask(keys, ["release", asker(1).token, "", "1"]);
    expect(await stage.ask(keys, ["inspect"])).toEqual(["", -2, "", "", [], 0, []]);
  });

  test("the lock of another program: its value up to 600 characters, and no number", async () => {
    const keys = stage.lock();
    await stage.redis.set(keys[0], `somebody else's ${"x".repeat(1_000)}`);
    const [holder, left, first, last] = await stage.ask(keys, ["inspect"]);
    expect(holder).toBe(`somebody else's ${"x".repeat(584)}`);
    expect([left, first, last]).toEqual([-1, "", ""]);
  });

  test("each operation of a call tells of its own lock", async () => {
    const [held, free, foreign] = [stage.lock(), stage.lock(), stage.lock()];
    const { first, last } = await stage.grant(held, asker(1), { want: 2 });
    await stage.redis.set(foreign[0], "somebody else's");
    const answers = await stage.batch([held, free, foreign].map((keys) => [keys, ["inspect"]] as const));
    expect(answers.map((answer) => [answer[0], answer[2], answer[3]])).toEqual([
      [asker(1).token, String(first), String(last)],
      ["", "", ""],
      ["somebody else's", "", ""],
    ]);
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
    for (const wrong of [0, 1, 2] as const) {
      const keys = stage.lock();
      await stage.redis.lpush(keys[wrong], "a");
      expect((await stage.ask(keys, ["inspect"]))[0]).toBe("error");
    }
  });
});
