import { afterAll, beforeAll, expect, test } from "vitest";

import { counterKey } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, requester, ScriptFixture } from "../../../../support/script-fixture.ts";

onRedis("extend and verify", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await fixture.listen(2);
  });
  afterAll(() => fixture.close());

  const { token } = requester(1);
  const extendOf = (ttlMs: number, holderInfo = "", number = "") => [
    "extend",
    token,
    String(ttlMs),
    holderInfo,
    number,
  ];

  test("raises the TTL of the caller's grant", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1), { ttlMs: 1_000 });
    expect(await fixture.run(keys, extendOf(30_000))).toBe(1);
    expect(await fixture.redis.pttl(keys[0])).toBeGreaterThan(29_000);
  });

  test("never shortens a TTL", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1), { ttlMs: 30_000 });
    expect(await fixture.run(keys, extendOf(1_000))).toBe(1);
    expect(await fixture.redis.pttl(keys[0])).toBeGreaterThan(29_000);
  });

  test("never recreates an expired grant", async () => {
    const keys = fixture.lock();
    expect(await fixture.run(keys, extendOf(30_000))).toBe(0);
    expect(await fixture.redis.exists(...keys)).toBe(0);
  });

  test("does not touch another's lock, even if only the ticket of the attempt differs", async () => {
    const keys = fixture.lock();
    const other = requester(1, { ticket: 2 });
    await fixture.grant(keys, other, { ttlMs: 5_000 });
    expect(await fixture.run(keys, extendOf(30_000, '["owner","a"]'))).toBe(2);
    expect(await fixture.holder(keys)).toBe(other.token);
    expect(await fixture.redis.pttl(keys[0])).toBeLessThanOrEqual(5_000);
    expect(await fixture.redis.exists(keys[2])).toBe(0);
  });

  test("does not touch a later grant of the token, which has a larger number", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(1), { ttlMs: 5_000, fencingCount: 3 });
    const extension = extendOf(30_000, '["owner","a"]', String(first - 1));
    expect(await fixture.run(keys, extension)).toBe(0);
    expect(await fixture.redis.pttl(keys[0])).toBeLessThanOrEqual(5_000);
    expect(await fixture.redis.exists(keys[2])).toBe(0);
    expect(await fixture.run(keys, extendOf(6_000, "", String(first)))).toBe(1);
    expect(await fixture.run(keys, extendOf(30_000, "", String(first + 2)))).toBe(1);
    expect(await fixture.redis.pttl(keys[0])).toBeGreaterThan(29_000);
  });

  test("grants the lock to the next waiter if it comes too late", async () => {
    const keys = fixture.lock();
    await fixture.redis.zadd(keys[1], 1, requester(2).member);
    expect(await fixture.run(keys, extendOf(30_000))).toBe(0);
    expect(await fixture.holder(keys)).toBe(requester(2).token);
    expect(await fixture.received(2)).toHaveLength(1);
  });

  test("needs the whole token and the separator after it in the lock key", async () => {
    const keys = fixture.lock();
    const longer = requester(1, { ticket: 15 });
    await fixture.grant(keys, longer, { ttlMs: 5_000 });
    expect(await fixture.run(keys, extendOf(30_000))).toBe(2);
    expect(await fixture.run(keys, ["verify", token])).toEqual([2]);
    expect(await fixture.redis.pttl(keys[0])).toBeLessThanOrEqual(5_000);
  });

  test("does not accept a lock key with the token alone, which no version writes", async () => {
    const keys = fixture.lock();
    await fixture.redis.set(keys[0], token, "PX", 5_000);
    expect(await fixture.run(keys, extendOf(30_000))).toBe(2);
    expect(await fixture.run(keys, extendOf(30_000, '["owner","a"]', "5"))).toBe(2);
    expect(await fixture.run(keys, ["verify", token])).toEqual([2]);
    expect(await fixture.run(keys, acquireOf(requester(1)))).toMatchObject({ 0: 0, 3: token });
    expect(await fixture.run(keys, ["release", token, "", "1"])).toEqual([0, 0, token]);
    expect(await fixture.redis.get(keys[0])).toBe(token);
    expect(await fixture.redis.pttl(keys[0])).toBeLessThanOrEqual(5_000);
  });

  test("does not touch the counter, and does not need it", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(1), { ttlMs: 1_000, fencingCount: 3 });
    await fixture.redis.del(counterKey());
    expect(await fixture.run(keys, extendOf(30_000, '["owner","a"]', String(first)))).toBe(1);
    expect(await fixture.run(keys, ["verify", token])).toEqual([1, expect.any(Number), first]);
    expect(await fixture.numbersOf(keys)).toEqual({ first, last: first + 2 });
    expect(await fixture.redis.exists(counterKey())).toBe(0);
  });

  test("gives its TTL to a lock that was made persistent", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1));
    await fixture.redis.persist(keys[0]);
    expect(await fixture.run(keys, extendOf(30_000))).toBe(1);
    expect(await fixture.redis.pttl(keys[0])).toBeGreaterThan(29_000);
  });

  const holders = [
    ["a mutex", requester(1)],
    ["a writer", requester(1, { lockMode: "w" })],
    ["a reader", requester(1, { lockMode: "r" })],
    ["a permit", requester(1, { lockMode: "s1/3" })],
  ] as const;

  test.each(holders)(
    "writes even if the TTL stays, so that WAIT waits for the write: %s",
    async (_what, who) => {
      const keys = fixture.lock();
      await fixture.grant(keys, who, { ttlMs: 60_000 });
      const written = await fixture.changes();
      expect(await fixture.run(keys, ["extend", who.token, "1000", "", ""])).toBe(1);
      expect(await fixture.changes()).toBeGreaterThan(written);
      expect(await fixture.redis.pttl(keys[0])).toBeGreaterThan(59_000);
    },
  );

  test.each(holders)(
    "raises the TTL on a server whose memory is full, metadata included: %s",
    async (_what, who) => {
      const keys = fixture.lock();
      await fixture.grant(keys, who, { ttlMs: 10_000 });
      await fixture.redis.config("SET", "maxmemory", "1");
      try {
        expect(await fixture.run(keys, ["extend", who.token, "60000", '["owner","a"]', ""])).toBe(1);
        expect(String(await fixture.run(fixture.lock(), acquireOf(who)))).toMatch(/^error,OOM /);
      } finally {
        await fixture.redis.config("SET", "maxmemory", "0");
      }
      expect(await fixture.redis.pttl(keys[0])).toBeGreaterThan(59_000);
      const [, remainingMs] = await fixture.run(keys, ["verify", who.token]);
      expect(remainingMs).toBeGreaterThan(59_000);
      expect(JSON.stringify(await fixture.run(keys, ["inspect"]))).toContain("owner");
    },
  );

  test("adds metadata to a grant without any, and a release removes that metadata", async () => {
    const keys = fixture.lock();
    const { first, last } = await fixture.grant(keys, requester(1), { fencingCount: 2 });
    await fixture.run(keys, extendOf(40_000, '["owner","b"]', String(first)));
    await fixture.run(keys, extendOf(50_000, '["owner","c"]', String(first)));
    expect(await fixture.numbersOf(keys)).toEqual({ first, last });
    expect(await fixture.redis.pttl(keys[0])).toBeGreaterThan(49_000);
    expect(await fixture.run(keys, ["release", token, "", "1"])).toEqual([1, 0, ""]);
    expect(await fixture.redis.exists(...keys)).toBe(0);
  });

  test("writes metadata that changed hands inside the holder's process", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1), { metadata: '["owner","a","reason","r"]' });
    await fixture.run(keys, extendOf(40_000, '["owner","b","number","17"]'));
    expect(await fixture.redis.hgetall(keys[2])).toEqual({ token, owner: "b", number: "17" });
    expect(await fixture.redis.pttl(keys[2])).toBeGreaterThan(39_000);
  });

  test("without metadata keeps the former metadata for as long as the grant lasts", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1), { ttlMs: 1_000, metadata: '["owner","a"]' });
    expect(await fixture.run(keys, extendOf(30_000))).toBe(1);
    expect(await fixture.redis.pttl(keys[2])).toBeGreaterThan(29_000);
    expect(await fixture.redis.hgetall(keys[2])).toEqual({ token, owner: "a" });
  });

  test("with a shorter TTL keeps the holder's metadata for as long as the grant lasts", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1), { ttlMs: 60_000 });
    await fixture.run(keys, extendOf(1_000, '["owner","b","number","17"]'));
    expect(await fixture.redis.pttl(keys[2])).toBeGreaterThan(59_000);
  });

  test("verify returns the remaining TTL, and changes nothing", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1), { ttlMs: 20_000 });
    const [status, left] = await fixture.run(keys, ["verify", token]);
    expect(status).toBe(1);
    expect(left).toBeGreaterThan(19_000);
    expect(left).toBeLessThanOrEqual(20_000);
    expect(await fixture.run(keys, ["verify", requester(2).token])).toEqual([2]);
    await fixture.redis.zadd(keys[1], 1, requester(2).member);
    await fixture.redis.del(keys[0]);
    expect(await fixture.run(keys, ["verify", token])).toEqual([0]);
    expect(await fixture.redis.zcard(keys[1])).toBe(1);
  });

  test("a key of another type is refused and not touched", async () => {
    const keys = fixture.lock();
    await fixture.redis.sadd(keys[0], "a");
    expect((await fixture.run(keys, extendOf(1_000)))[0]).toBe("error");
    expect((await fixture.run(keys, ["verify", token]))[0]).toBe("error");
    expect(await fixture.redis.pttl(keys[0])).toBe(-1);
  });
});
