import { afterAll, beforeAll, expect, test } from "vitest";

import { counterKey } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, asker, ScriptStage } from "../../../../support/script-fixture.ts";

onRedis("extend and verify", () => {
  let stage: ScriptStage;
  beforeAll(async () => {
    stage = await ScriptStage.open();
    await stage.listen(2);
  });
  afterAll(() => stage.close());

  const { token } = asker(1);
  const extendOf = (ttlMs: number, words = "", number = "") => [
    "extend",
    token,
    String(ttlMs),
    words,
    number,
  ];

  test("raises the TTL of what is ours", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1), { ttlMs: 1_000 });
    expect(await stage.ask(keys, extendOf(30_000))).toBe(1);
    expect(await stage.redis.pttl(keys[0])).toBeGreaterThan(29_000);
  });

  test("never shortens a TTL", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1), { ttlMs: 30_000 });
    expect(await stage.ask(keys, extendOf(1_000))).toBe(1);
    expect(await stage.redis.pttl(keys[0])).toBeGreaterThan(29_000);
  });

  test("never creates again what is gone", async () => {
    const keys = stage.lock();
    expect(await stage.ask(keys, extendOf(30_000))).toBe(0);
    expect(await stage.redis.exists(...keys)).toBe(0);
  });

  test("does not touch another's lock, not even that of another ticket of the attempt", async () => {
    const keys = stage.lock();
    const other = asker(1, { ticket: 2 });
    await stage.grant(keys, other, { ttlMs: 5_000 });
    expect(await stage.ask(keys, extendOf(30_000, '["owner","a"]'))).toBe(2);
    expect(await stage.holder(keys)).toBe(other.token);
    expect(await stage.redis.pttl(keys[0])).toBeLessThanOrEqual(5_000);
    expect(await stage.redis.exists(keys[2])).toBe(0);
  });

  test("does not touch a later grant of the token, which has a greater number", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, asker(1), { ttlMs: 5_000, want: 3 });
    const extension = extendOf(30_000, '["owner","a"]', String(first - 1));
    expect(await stage.ask(keys, extension)).toBe(0);
    expect(await stage.redis.pttl(keys[0])).toBeLessThanOrEqual(5_000);
    expect(await stage.redis.exists(keys[2])).toBe(0);
    expect(await stage.ask(keys, extendOf(6_000, "", String(first)))).toBe(1);
    expect(await stage.ask(keys, extendOf(30_000, "", String(first + 2)))).toBe(1);
    expect(await stage.redis.pttl(keys[0])).toBeGreaterThan(29_000);
  });

  test("one that comes too late hands the lock to the next", async () => {
    const keys = stage.lock();
    await stage.redis.zadd(keys[1], 1, asker(2).member);
    expect(await stage.ask(keys, extendOf(30_000))).toBe(0);
    expect(await stage.holder(keys)).toBe(asker(2).token);
    expect(await stage.heard(2)).toHaveLength(1);
  });

  test("counts a lock as ours only where K has the whole token and the blank behind it", async () => {
    const keys = stage.lock();
    const longer = asker(1, { ticket: 15 });
    await stage.grant(keys, longer, { ttlMs: 5_000 });
    expect(await stage.ask(keys, extendOf(30_000))).toBe(2);
    expect(await stage.ask(keys, ["verify", token])).toEqual([2]);
    expect(await stage.redis.pttl(keys[0])).toBeLessThanOrEqual(5_000);
  });

  test("counts no lock as ours whose value is the token alone: we never wrote that", async () => {
    const keys = stage.lock();
    await stage.redis.set(keys[0], token, "PX", 5_000);
    expect(await stage.ask(keys, extendOf(30_000))).toBe(2);
    expect(await stage.ask(keys, extendOf(30_000, '["owner","a"]', "5"))).toBe(2);
    expect(await stage.ask(keys, ["verify", token])).toEqual([2]);
    expect(await stage.ask(keys, acquireOf(asker(1)))).toMatchObject({ 0: 0, 3: token });
    expect(await stage.ask(keys, ["release", token, "", "1"])).toEqual([0, 0, token]);
    expect(await stage.redis.get(keys[0])).toBe(token);
    expect(await stage.redis.pttl(keys[0])).toBeLessThanOrEqual(5_000);
  });

  test("does not touch the counter: what was lost of it is not needed", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, asker(1), { ttlMs: 1_000, want: 3 });
    await stage.redis.del(counterKey());
    expect(await stage.ask(keys, extendOf(30_000, '["owner","a"]', String(first)))).toBe(1);
    expect(await stage.ask(keys, ["verify", token])).toEqual([1, expect.any(Number), first]);
    expect(await stage.numbersOf(keys)).toEqual({ first, last: first + 2 });
    expect(await stage.redis.exists(counterKey())).toBe(0);
  });

  test("leaves a lock to stay that somebody made to stay", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1));
    await stage.redis.persist(keys[0]);
    expect(await stage.ask(keys, extendOf(30_000))).toBe(1);
    expect(await stage.redis.pttl(keys[0])).toBe(-1);
  });

  test("whose words come first behind a grant without any: a release removes them", async () => {
    const keys = stage.lock();
    const { first, last } = await stage.grant(keys, asker(1), { want: 2 });
    await stage.ask(keys, extendOf(40_000, '["owner","b"]', String(first)));
    await stage.ask(keys, extendOf(50_000, '["owner","c"]', String(first)));
    expect(await stage.numbersOf(keys)).toEqual({ first, last });
    expect(await stage.redis.pttl(keys[0])).toBeGreaterThan(49_000);
    expect(await stage.ask(keys, ["release", token, "", "1"])).toEqual([1, 0, ""]);
    expect(await stage.redis.exists(...keys)).toBe(0);
  });

  test("writes what changed hands inside the holder's process", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1), { words: '["owner","a","reason","r"]' });
    await stage.ask(keys, extendOf(40_000, '["owner","b","number","17"]'));
    expect(await stage.redis.hgetall(keys[2])).toEqual({ token, owner: "b", number: "17" });
    expect(await stage.redis.pttl(keys[2])).toBeGreaterThan(39_000);
  });

  test("an extension without words keeps what was said before for as long as the grant lasts", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1), { ttlMs: 1_000, words: '["owner","a"]' });
    expect(await stage.ask(keys, extendOf(30_000))).toBe(1);
    expect(await stage.redis.pttl(keys[2])).toBeGreaterThan(29_000);
    expect(await stage.redis.hgetall(keys[2])).toEqual({ token, owner: "a" });
  });

  test("a shorter extension keeps what was said of the holder for as long as the grant lasts", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1), { ttlMs: 60_000 });
    await stage.ask(keys, extendOf(1_000, '["owner","b","number","17"]'));
    expect(await stage.redis.pttl(keys[2])).toBeGreaterThan(59_000);
  });

  test("verify tells what is left of ours, and changes nothing", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1), { ttlMs: 20_000 });
    const [status, left] = await stage.ask(keys, ["verify", token]);
    expect(status).toBe(1);
    expect(left).toBeGreaterThan(19_000);
    expect(left).toBeLessThanOrEqual(20_000);
    expect(await stage.ask(keys, ["verify", asker(2).token])).toEqual([2]);
    await stage.redis.zadd(keys[1], 1, asker(2).member);
    await stage.redis.del(keys[0]);
    expect(await stage.ask(keys, ["verify", token])).toEqual([0]);
    expect(await stage.redis.zcard(keys[1])).toBe(1);
  });

  test("a key of another type is refused and not touched", async () => {
    const keys = stage.lock();
    await stage.redis.sadd(keys[0], "a");
    expect((await stage.ask(keys, extendOf(1_000)))[0]).toBe("error");
    expect((await stage.ask(keys, ["verify", token]))[0]).toBe("error");
    expect(await stage.redis.pttl(keys[0])).toBe(-1);
  });
});
