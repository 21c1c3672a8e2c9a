import { afterAll, beforeAll, expect, test } from "vitest";

import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, requester, ScriptFixture, type Requester } from "../../../../support/script-fixture.ts";

const reader = { lockMode: "r" };
const writer = { lockMode: "w" };

onRedis("dead waiters and expired holders of a shared lock", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await Promise.all([fixture.listen(2), fixture.listen(3), fixture.listen(4, "p")]);
  });
  afterAll(() => fixture.close());

  test("waiters that are dead or past their deadline are skipped", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, writer));
    const deadWaiter = requester(9, { ...writer, ticket: 1 });
    for (const who of [deadWaiter, requester(2, { ...writer, deadline: 1 }), requester(3, reader)]) {
      await fixture.queue(keys, who);
    }
    await fixture.run(keys, ["release", requester(1, writer).token, "", "1"]);
    expect(await tokens(keys[0])).toEqual([requester(3, reader).token]);
    expect(await fixture.redis.exists(keys[1])).toBe(0);
    expect(await fixture.redis.hget(keys[2], "used")).toBe("1");
    expect(await fixture.received(2)).toEqual([]);
    expect(await fixture.received(3)).toHaveLength(1);
  });

  test("after 64 dead waiters the caller must repeat, and the repeat serves the living waiter", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, writer));
    for (let dead = 100; dead < 170; dead += 1) {
      await fixture.redis.zadd(keys[1], dead, requester(dead, writer).member);
    }
    await fixture.redis.zadd(keys[1], 500, requester(2, { ...writer, ticket: 500 }).member);
    const release = ["release", requester(1, writer).token, "", "1"];
    expect(await fixture.run(keys, release)).toMatchObject({ 0: 1, 1: 1 });
    expect(await fixture.redis.zcard(keys[1])).toBe(7);
    expect(await fixture.run(keys, release)).toMatchObject({ 0: 0, 1: 0 });
    expect(await tokens(keys[0])).toEqual([requester(2, { ...writer, ticket: 500 }).token]);
    expect(await fixture.received(2)).toHaveLength(1);
  });

  test("after 64 dead waiters a new request must repeat, and the repeat is granted", async () => {
    const keys = fixture.lock();
    for (let dead = 100; dead < 170; dead += 1) {
      await fixture.redis.zadd(keys[1], dead, requester(dead, writer).member);
    }
    expect(await fixture.run(keys, acquireOf(requester(1, writer)))).toEqual([3]);
    expect(await fixture.run(keys, acquireOf(requester(1, writer)))).toMatchObject({ 0: 1 });
  });

  test("a waiter that is granted among many repeats until every waiter that fits is served", async () => {
    const keys = fixture.lock();
    const many = { lockMode: "s1/200" };
    const own = requester(2, { ...many, ticket: 150 });
    await fixture.grant(keys, requester(1, { lockMode: "s200/200" }));
    for (let place = 100; place < 200; place += 1) {
      const waiter = place === 150 ? own : requester(place === 199 ? 3 : place, { ...many, ticket: place });
      await fixture.redis.zadd(keys[1], place, waiter.member); // only two of these waiters belong to live processes
    }
    await expire(keys[0], requester(1, { lockMode: "s200/200" }));
    expect(await fixture.run(keys, acquireOf(own, { wait: "1" }))).toEqual([3]);
    expect(await tokens(keys[0])).toEqual([own.token]);
    expect(await fixture.run(keys, acquireOf(own, { wait: "1" }))).toMatchObject({ 0: 1, 3: own.token });
    expect(await fixture.redis.zcard(keys[0])).toBe(2);
    expect(await fixture.redis.exists(keys[1])).toBe(0);
    expect([await fixture.received(2), await fixture.received(3)].map(({ length }) => length)).toEqual([
      0, 1,
    ]);
  });

  test("one call drops at most 64 expired holders", async () => {
    const keys = fixture.lock();
    const many = { lockMode: "s1/70" };
    const holders = Array.from({ length: 70 }, (_, index) => requester(100 + index, many));
    for (const holder of holders) {
      await fixture.grant(keys, holder);
    }
    for (const holder of holders) {
      await expire(keys[0], holder);
    }
    await fixture.run(keys, ["verify", requester(1, many).token]);
    expect(await fixture.redis.zcard(keys[0])).toBe(6);
    expect(await fixture.redis.hget(keys[2], "used")).toBe("6");
    await fixture.run(keys, ["verify", requester(1, many).token]);
    expect(await fixture.redis.exists(keys[0], keys[2])).toBe(0);
  });

  test("a request that finds more than 64 expired holders must repeat, and is not refused as held", async () => {
    const keys = fixture.lock();
    const readers = Array.from({ length: 70 }, (_, index) => requester(100 + index, reader));
    for (const holder of readers) {
      await fixture.grant(keys, holder);
    }
    for (const holder of readers) {
      await expire(keys[0], holder);
    }
    expect(await fixture.run(keys, acquireOf(requester(1, writer)))).toEqual([3]);
    expect(await fixture.run(keys, acquireOf(requester(1, writer)))).toMatchObject({ 0: 1 });
  });

  async function expire(K: string, { token }: Requester): Promise<void> {
    await fixture.redis.zadd(K, "XX", 1, token);
  }

  async function tokens(K: string): Promise<string[]> {
    return fixture.redis.zrange(K, "0", "-1");
  }
});
