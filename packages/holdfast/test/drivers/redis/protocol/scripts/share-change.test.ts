import { afterAll, beforeAll, expect, test } from "vitest";

import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, requester, ScriptFixture } from "../../../../support/script-fixture.ts";

const one = { lockMode: "s1/3" };
const heavy = { lockMode: "s3/3" };
const reader = { lockMode: "r" };
const writer = { lockMode: "w" };

onRedis("changes of a shared lock", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await Promise.all([fixture.listen(1), fixture.listen(2), fixture.listen(3), fixture.listen(4)]);
  });
  afterAll(() => fixture.close());

  test("another kind is refused while a holder or waiter exists, and nothing is touched", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, writer));
    await fixture.queue(keys, requester(2, writer));
    expect(await fixture.run(keys, acquireOf(requester(5, one), { wait: "1" }))).toEqual([
      "error",
      "KINDMISMATCH read-write",
    ]);
    expect((await fixture.run(keys, acquireOf(requester(5), { wait: "1" })))[0]).toBe("error");
    expect(await fixture.run(keys, ["setLimit", "5"])).toEqual(["error", "KINDMISMATCH read-write"]);
    expect(await fixture.redis.zrange(keys[1], "0", "-1")).toEqual([requester(2, writer).member]);
    expect(await fixture.redis.zrange(keys[0], "0", "-1")).toEqual([requester(1, writer).token]);
  });

  test("a mutex is another kind, held or with waiters", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1));
    expect((await fixture.run(keys, acquireOf(requester(2, reader))))[0]).toBe("error");
    expect((await fixture.run(keys, ["setLimit", "5"]))[0]).toBe("error");
    await fixture.redis.del(keys[0]);
    await fixture.redis.zadd(keys[1], 2, requester(2).member);
    expect(await fixture.run(keys, acquireOf(requester(3, reader)))).toEqual(["error", "KINDMISMATCH mutex"]);
    expect(await fixture.redis.zrange(keys[1], "0", "-1")).toEqual([requester(2).member]);
  });

  test("a lock whose holders have all expired is free for a mutex", async () => {
    const keys = fixture.lock();
    const shares = [requester(1, { lockMode: "s1/2" }), requester(2, { lockMode: "s1/2" })] as const;
    for (const who of shares) {
      await fixture.grant(keys, who);
    }
    await fixture.redis.zadd(keys[0], "XX", 1, shares[0].token);
    expect(await fixture.run(keys, acquireOf(requester(3)))).toMatchObject({ 0: "error" }); // the other one is still a holder
    expect(await fixture.redis.zcard(keys[0])).toBe(1);
    await fixture.redis.zadd(keys[0], "XX", 1, shares[1].token);
    expect(await fixture.run(keys, acquireOf(requester(3)))).toMatchObject({ 0: 1 });
    expect(await fixture.holder(keys)).toBe(requester(3).token);
  });

  test("a higher limit serves waiters, also those that requested the lower one", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, heavy));
    await fixture.queue(keys, requester(2, { lockMode: "s2/3" }));
    await fixture.queue(keys, requester(3, one));
    expect(await fixture.run(keys, ["setLimit", "5"])).toEqual([1, 0]);
    expect(await fixture.redis.zrange(keys[1], "0", "-1")).toEqual([requester(3, one).member]);
    expect(await fixture.redis.hget(keys[2], "used")).toBe("5");
    expect([await fixture.received(2), await fixture.received(3)].map(({ length }) => length)).toEqual([
      1, 0,
    ]);
  });

  test("a waiter for more than a lowered limit gets no grant at its repeat, but an error", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, { lockMode: "s2/3" }));
    const dead = requester(9, { lockMode: "s2/3" });
    await fixture.queue(keys, dead); // keeps the next entry from being first, until it is found dead
    await fixture.queue(keys, requester(10, heavy));
    await fixture.run(keys, ["setLimit", "2"]);
    await fixture.redis.zrem(keys[1], dead.member);
    expect(await fixture.queue(keys, requester(10, heavy))).toEqual(["error", "LIMITMISMATCH 2"]);
    expect(await fixture.redis.zrange(keys[0], "0", "-1")).toEqual([
      requester(1, { lockMode: "s2/3" }).token,
    ]);
    expect(await fixture.redis.hget(keys[2], "used")).toBe("2");
  });

  test("a waiter for more than a lowered limit is notified to retry", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, { lockMode: "s2/3" }));
    await fixture.queue(keys, requester(2, heavy));
    await fixture.run(keys, ["setLimit", "2"]);
    expect(await fixture.received(2)).toEqual([`retry ${requester(2, heavy).token}`]);
    expect(await fixture.redis.exists(keys[1])).toBe(0);
  });

  test("a downgrade keeps the number, lets in the readers at the head, and no writer", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(1, writer));
    for (const who of [requester(2, reader), requester(3, writer), requester(4, reader)]) {
      await fixture.queue(keys, who);
    }
    expect(await fixture.run(keys, ["downgrade", requester(1, writer).token, ""])).toEqual([1, 0]);
    expect(await fixture.redis.hget(keys[2], `h${requester(1, writer).token}`)).toBe(`${first} 1 1`);
    expect(await fixture.redis.hget(keys[2], "used")).toBe("2");
    expect(await fixture.redis.zrange(keys[1], "0", "-1")).toEqual([
      requester(3, writer).member,
      requester(4, reader).member,
    ]);
    expect(await fixture.received(2)).toHaveLength(1);
  });

  test("a downgrade that is sent twice counts once, with readers beside it", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, writer));
    const downgrade = ["downgrade", requester(1, writer).token, ""];
    await fixture.run(keys, downgrade);
    await fixture.grant(keys, requester(2, reader));
    await fixture.grant(keys, requester(3, reader));
    expect(await fixture.run(keys, downgrade)).toEqual([1, 0]);
    expect(await fixture.redis.hget(keys[2], "used")).toBe("3");
    await fixture.queue(keys, requester(4, writer));
    await fixture.run(keys, ["release", requester(2, reader).token, "", "1"]);
    await fixture.run(keys, ["release", requester(3, reader).token, "", "1"]);
    expect(await fixture.redis.zrange(keys[0], "0", "-1")).toEqual([requester(1, writer).token]);
    expect(await fixture.received(4)).toEqual([]);
    await fixture.run(keys, ["release", requester(1, writer).token, "", "1"]);
    expect(await fixture.received(4)).toHaveLength(1);
  });

  test("a downgrade of a lost or broken grant reports the loss and changes nothing", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(1, writer));
    expect(await fixture.run(keys, ["downgrade", requester(5, writer).token, ""])).toEqual([0]);
    await fixture.run(keys, ["breakGrant", String(first), "s", "why"]);
    expect(await fixture.run(keys, ["downgrade", requester(1, writer).token, ""])).toEqual([3]);
    expect(await fixture.redis.exists(keys[0])).toBe(0);
    expect(await fixture.redis.hgetall(keys[2])).toEqual({ broken: requester(1, writer).token });
    expect(await fixture.redis.pttl(keys[2])).toBeGreaterThan(29_000);
    expect(await fixture.redis.pttl(keys[2])).toBeLessThanOrEqual(30_000);
  });

  test("a break ends one holder of many, notifies it, and serves waiters", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, { lockMode: "s2/3" }));
    const { first } = await fixture.grant(keys, requester(2, one));
    await fixture.queue(keys, requester(3, one));
    expect(await fixture.run(keys, ["breakGrant", String(first), "s", "too long"])).toEqual([1, 0]);
    expect(await fixture.run(keys, ["breakGrant", String(first), "s", "too long"])).toEqual([0, 0]);
    const [message] = await fixture.received(2);
    expect(JSON.parse(String(message).replace("broken ", ""))).toEqual([
      requester(2, one).token,
      keys[0],
      "too long",
    ]);
    expect(await fixture.received(3)).toHaveLength(1);
    expect(await fixture.run(keys, ["verify", requester(2, one).token])).toEqual([3]);
    expect(await fixture.run(keys, ["verify", requester(1, { lockMode: "s2/3" }).token])).toMatchObject({
      0: 1,
    });
    expect(await fixture.run(keys, ["extend", requester(2, one).token, "1000", "", ""])).toBe(3);
  });

  test("an extension does not touch a later grant of the token, which has a larger number", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(1, one), { ttlMs: 5_000 });
    const { token } = requester(1, one);
    expect(await fixture.run(keys, ["extend", token, "60000", "", String(first - 1)])).toBe(0);
    expect(await fixture.redis.pttl(keys[0])).toBeLessThan(10_000);
    expect(await fixture.run(keys, ["extend", token, "60000", "", String(first)])).toBe(1);
  });

  test("deleted metadata of the holders is restored from their tokens", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(1, { lockMode: "s2/3" }), {
      metadata: '["owner","a"]',
    });
    await fixture.redis.del(keys[2]);
    expect(await fixture.run(keys, acquireOf(requester(2, { lockMode: "s2/3" })))).toMatchObject({ 0: 0 });
    const { token } = requester(1, { lockMode: "s2/3" });
    expect(await fixture.redis.hgetall(keys[2])).toMatchObject({ used: "2", [`h${token}`]: "0 2 1" });
    expect(await fixture.run(keys, ["verify", token])).toEqual([1, expect.any(Number), 0]); // the number is not known
    expect(await fixture.run(keys, ["extend", token, "30000", "", String(first)])).toBe(1);
    await fixture.redis.del(keys[2]);
    await fixture.grant(keys, requester(3, one));
    expect(await fixture.redis.hget(keys[2], "used")).toBe("3");
    expect(await fixture.redis.hget(keys[2], "limit")).toBe("3");
    expect(
      await fixture.run(keys, ["release", requester(1, { lockMode: "s2/3" }).token, "", "1"]),
    ).toMatchObject({
      0: 1,
    });
    expect(await fixture.run(keys, ["release", requester(3, one).token, "", "1"])).toMatchObject({ 0: 1 });
    expect(await fixture.redis.exists(keys[0], keys[2])).toBe(0);
  });

  test("a foreign sorted set is another kind, and stays unchanged", async () => {
    const keys = fixture.lock();
    await fixture.redis.zadd(keys[0], 5, "somebody", 7, requester(1, one).token);
    for (const args of [
      acquireOf(requester(2, one)),
      acquireOf(requester(2, one), { wait: "1" }),
      ["release", requester(1, one).token, "", "1"],
      ["setLimit", "4"],
    ]) {
      expect(await fixture.run(keys, args)).toEqual(["error", "KINDMISMATCH unknown sorted set"]);
    }
    expect(await fixture.redis.zrange(keys[0], "0", "-1", "WITHSCORES")).toEqual([
      "somebody",
      "5",
      requester(1, one).token,
      "7",
    ]);
    expect(await fixture.redis.exists(keys[2])).toBe(0);
  });

  test("a key of another type is not touched", async () => {
    const keys = fixture.lock();
    await fixture.redis.lpush(keys[0], "a");
    expect((await fixture.run(keys, acquireOf(requester(1, reader))))[0]).toBe("error");
    expect(await fixture.redis.lrange(keys[0], 0, -1)).toEqual(["a"]);
  });

  test("inspect reports the remaining time, number, weight and metadata of each holder, and the queue", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(1, one), {
      ttlMs: 60_000,
      metadata: '["owner","a"]',
    });
    const { first: second } = await fixture.grant(keys, requester(2, { lockMode: "s2/3" }), {
      ttlMs: 20_000,
    });
    await fixture.queue(keys, requester(3, heavy));
    const [, , newest, , , waiterCount, members, kind, limit, holders] = await fixture.run(keys, ["inspect"]);
    expect([newest, waiterCount, members, kind, limit]).toEqual([
      "", // each holder has a number of its own
      1,
      [requester(3, heavy).member],
      "semaphore",
      3,
    ]);
    expect(holders).toEqual([
      [requester(2, { lockMode: "s2/3" }).token, expect.any(Number), String(second), 2, "", String(second)],
      [requester(1, one).token, expect.any(Number), String(first), 1, '["owner","a"]', String(first)],
    ]);
  });

  test("the release of the last holder leaves nothing", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, reader), { metadata: '["owner","a"]' });
    await fixture.grant(keys, requester(2, reader));
    await fixture.run(keys, ["release", requester(1, reader).token, "", "1"]);
    expect((await fixture.redis.hkeys(keys[2])).toSorted()).toEqual(
      ["kind", "limit", "used", `h${requester(2, reader).token}`].toSorted(),
    );
    await fixture.run(keys, ["release", requester(2, reader).token, "", "1"]);
    expect(await fixture.redis.exists(...keys)).toBe(0);
  });
});
