import { afterAll, beforeAll, expect, test } from "vitest";

import { detectConnection } from "../../../../../src/drivers/redis/clients/detect.ts";
import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, asker, ScriptStage } from "../../../../support/script-fixture.ts";

const one = { share: "s1/3" };
const heavy = { share: "s3/3" };
const reader = { share: "r" };
const writer = { share: "w" };

onRedis("what changes a lock that several may hold", () => {
  let stage: ScriptStage;
  beforeAll(async () => {
    stage = await ScriptStage.open();
    await Promise.all([stage.listen(1), stage.listen(2), stage.listen(3), stage.listen(4)]);
  });
  afterAll(() => stage.close());

  test("another kind is refused while somebody holds or waits, and nothing is touched", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, writer));
    await stage.queue(keys, asker(2, writer));
    expect(await stage.ask(keys, acquireOf(asker(5, one), { wait: "1" }))).toEqual([
      "error",
      "KINDMISMATCH read-write",
    ]);
    expect((await stage.ask(keys, acquireOf(asker(5), { wait: "1" })))[0]).toBe("error");
    expect(await stage.ask(keys, ["setLimit", "5"])).toEqual(["error", "KINDMISMATCH read-write"]);
    expect(await stage.redis.zrange(keys[1], "0", "-1")).toEqual([asker(2, writer).member]);
    expect(await stage.redis.zrange(keys[0], "0", "-1")).toEqual([asker(1, writer).token]);
  });

  test("a mutex is another kind, held or waited for", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1));
    expect((await stage.ask(keys, acquireOf(asker(2, reader))))[0]).toBe("error");
    expect((await stage.ask(keys, ["setLimit", "5"]))[0]).toBe("error");
    await stage.redis.del(keys[0]);
    await stage.redis.zadd(keys[1], 2, asker(2).member);
    expect(await stage.ask(keys, acquireOf(asker(3, reader)))).toEqual(["error", "KINDMISMATCH mutex"]);
    expect(await stage.redis.zrange(keys[1], "0", "-1")).toEqual([asker(2).member]);
  });

  test("a lock whose holders have all expired is free for a mutex", async () => {
    const keys = stage.lock();
    const shares = [asker(1, { share: "s1/2" }), asker(2, { share: "s1/2" })] as const;
    for (const who of shares) {
      await stage.grant(keys, who);
    }
    await stage.redis.zadd(keys[0], "XX", 1, shares[0].token);
    expect(await stage.ask(keys, acquireOf(asker(3)))).toMatchObject({ 0: "error" }); // the other holds it
    expect(await stage.redis.zcard(keys[0])).toBe(1);
    await stage.redis.zadd(keys[0], "XX", 1, shares[1].token);
    expect(await stage.ask(keys, acquireOf(asker(3)))).toMatchObject({ 0: 1 });
    expect(await stage.holder(keys)).toBe(asker(3).token);
  });

  test("a higher limit serves who waits, also who asked under the lower one", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, heavy));
    await stage.queue(keys, asker(2, { share: "s2/3" }));
    await stage.queue(keys, asker(3, one));
    expect(await stage.ask(keys, ["setLimit", "5"])).toEqual([1, 0]);
    expect(await stage.redis.zrange(keys[1], "0", "-1")).toEqual([asker(3, one).member]);
    expect(await stage.redis.hget(keys[2], "used")).toBe("5");
    expect([await stage.heard(2), await stage.heard(3)].map(({ length }) => length)).toEqual([1, 0]);
  });

  test("who waits for more than a lowered limit is not granted when it asks again, and is told", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, { share: "s2/3" }));
    const gone = asker(9, { share: "s2/3" });
    await stage.queue(keys, gone); // keeps the next from being first, until it is found dead
    await stage.queue(keys, asker(10, heavy));
    await stage.ask(keys, ["setLimit", "2"]);
    await stage.redis.zrem(keys[1], gone.member);
    expect(await stage.queue(keys, asker(10, heavy))).toEqual(["error", "LIMITMISMATCH 2"]);
    expect(await stage.redis.zrange(keys[0], "0", "-1")).toEqual([asker(1, { share: "s2/3" }).token]);
    expect(await stage.redis.hget(keys[2], "used")).toBe("2");
  });

  test("who waits for more than a lowered limit is told to ask again", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, { share: "s2/3" }));
    await stage.queue(keys, asker(2, heavy));
    await stage.ask(keys, ["setLimit", "2"]);
    expect(await stage.heard(2)).toEqual([`retry ${asker(2, heavy).token}`]);
    expect(await stage.redis.exists(keys[1])).toBe(0);
  });

  test("a downgrade keeps the number, lets in the readers at the head, and no writer", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, asker(1, writer));
    for (const who of [asker(2, reader), asker(3, writer), asker(4, reader)]) {
      await stage.queue(keys, who);
    }
    expect(await stage.ask(keys, ["downgrade", asker(1, writer).token, ""])).toEqual([1, 0]);
    expect(await stage.redis.hget(keys[2], `h${asker(1, writer).token}`)).toBe(`${first} 1 1`);
    expect(await stage.redis.hget(keys[2], "used")).toBe("2");
    expect(await stage.redis.zrange(keys[1], "0", "-1")).toEqual([
      asker(3, writer).member,
      asker(4, reader).member,
    ]);
    expect(await stage.heard(2)).toHaveLength(1);
  });

  test("a downgrade that is sent twice counts once, with readers beside it", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, writer));
    const downgrade = ["downgrade", asker(1, writer).token, ""];
    await stage.ask(keys, downgrade);
    await stage.grant(keys, asker(2, reader));
    await stage.grant(keys, asker(3, reader));
    expect(await stage.ask(keys, downgrade)).toEqual([1, 0]);
    expect(await stage.redis.hget(keys[2], "used")).toBe("3");
    await stage.queue(keys, asker(4, writer));
    await stage.ask(keys, ["release", asker(2, reader).token, "", "1"]);
    await stage.ask(keys, ["release", asker(3, reader).token, "", "1"]);
    expect(await stage.redis.zrange(keys[0], "0", "-1")).toEqual([asker(1, writer).token]);
    expect(await stage.heard(4)).toEqual([]);
    await stage.ask(keys, ["release", asker(1, writer).token, "", "1"]);
    expect(await stage.heard(4)).toHaveLength(1);
  });

  test("a downgrade of what is gone, or was broken, says so and changes nothing", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, asker(1, writer));
    expect(await stage.ask(keys, ["downgrade", asker(5, writer).token, ""])).toEqual([0]);
    await stage.ask(keys, ["breakGrant", String(first), "s", "why"]);
    expect(await stage.ask(keys, ["downgrade", asker(1, writer).token, ""])).toEqual([3]);
    expect(await stage.redis.exists(keys[0])).toBe(0);
    expect(await stage.redis.hgetall(keys[2])).toEqual({ broken: asker(1, writer).token });
    expect(await stage.redis.pttl(keys[2])).toBeGreaterThan(29_000);
    expect(await stage.redis.pttl(keys[2])).toBeLessThanOrEqual(30_000);
  });

  test("a break ends one holder of many, tells it, and serves who waits", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, { share: "s2/3" }));
    const { first } = await stage.grant(keys, asker(2, one));
    await stage.queue(keys, asker(3, one));
    expect(await stage.ask(keys, ["breakGrant", String(first), "s", "too long"])).toEqual([1, 0]);
    expect(await stage.ask(keys, ["breakGrant", String(first), "s", "too long"])).toEqual([0, 0]);
    const [message] = await stage.heard(2);
    expect(JSON.parse(String(message).replace("broken ", ""))).toEqual([
      asker(2, one).token,
      keys[0],
      "too long",
    ]);
    expect(await stage.heard(3)).toHaveLength(1);
    expect(await stage.ask(keys, ["verify", asker(2, one).token])).toEqual([3]);
    expect(await stage.ask(keys, ["verify", asker(1, { share: "s2/3" }).token])).toMatchObject({ 0: 1 });
    expect(await stage.ask(keys, ["extend", asker(2, one).token, "1000", "", ""])).toBe(3);
  });

  test("an extension does not touch a later grant of the token, which has a greater number", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, asker(1, one), { ttlMs: 5_000 });
    const { token } = asker(1, one);
    expect(await stage.ask(keys, ["extend", token, "60000", "", String(first - 1)])).toBe(0);
    expect(await stage.redis.pttl(keys[0])).toBeLessThan(10_000);
    expect(await stage.ask(keys, ["extend", token, "60000", "", String(first)])).toBe(1);
  });

  test("what was said of the holders and is gone is restored from their tokens", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, asker(1, { share: "s2/3" }), { words: '["owner","a"]' });
    await stage.redis.del(keys[2]);
    expect(await stage.ask(keys, acquireOf(asker(2, { share: "s2/3" })))).toMatchObject({ 0: 0 });
    const { token } = asker(1, { share: "s2/3" });
    expect(await stage.redis.hgetall(keys[2])).toMatchObject({ used: "2", [`h${token}`]: "0 2 1" });
    expect(await stage.ask(keys, ["verify", token])).toEqual([1, expect.any(Number), 0]); // not known
    expect(await stage.ask(keys, ["extend", token, "30000", "", String(first)])).toBe(1);
    await stage.redis.del(keys[2]);
    await stage.grant(keys, asker(3, one));
    expect(await stage.redis.hget(keys[2], "used")).toBe("3");
    expect(await stage.redis.hget(keys[2], "limit")).toBe("3");
    expect(await stage.ask(keys, ["release", asker(1, { share: "s2/3" }).token, "", "1"])).toMatchObject({
      0: 1,
    });
    expect(await stage.ask(keys, ["release", asker(3, one).token, "", "1"])).toMatchObject({ 0: 1 });
    expect(await stage.redis.exists(keys[0], keys[2])).toBe(0);
  });

  test("a sorted set that is not ours is another kind, and stays as it is", async () => {
    const keys = stage.lock();
    await stage.redis.zadd(keys[0], 5, "somebody", 7, asker(1, one).token);
    for (const args of [
      acquireOf(asker(2, one)),
      acquireOf(asker(2, one), { wait: "1" }),
      ["release", asker(1, one).token, "", "1"],
      ["setLimit", "4"],
    ]) {
      expect(await stage.ask(keys, args)).toEqual(["error", "KINDMISMATCH sorted set of others"]);
    }
    expect(await stage.redis.zrange(keys[0], "0", "-1", "WITHSCORES")).toEqual([
      "somebody",
      "5",
      asker(1, one).token,
      "7",
    ]);
    expect(await stage.redis.exists(keys[2])).toBe(0);
  });

  test("a key of another type is not touched", async () => {
    const keys = stage.lock();
    await stage.redis.lpush(keys[0], "a");
    expect((await stage.ask(keys, acquireOf(asker(1, reader))))[0]).toBe("error");
    expect(await stage.redis.lrange(keys[0], 0, -1)).toEqual(["a"]);
  });

  test("inspect tells of each holder who is left, its number, weight and words, and of the queue", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, asker(1, one), { ttlMs: 60_000, words: '["owner","a"]' });
    const { first: second } = await stage.grant(keys, asker(2, { share: "s2/3" }), { ttlMs: 20_000 });
    await stage.queue(keys, asker(3, heavy));
    const [, , newest, , , waiterCount, members, kind, limit, holders] = await stage.ask(keys, ["inspect"]);
    expect([newest, waiterCount, members, kind, limit]).toEqual([
      "", // each holder has a number of its own
      1,
      [asker(3, heavy).member],
      "semaphore",
      3,
    ]);
    expect(holders).toEqual([
      [asker(2, { share: "s2/3" }).token, expect.any(Number), String(second), 2, "", String(second)],
      [asker(1, one).token, expect.any(Number), String(first), 1, '["owner","a"]', String(first)],
    ]);
  });

  test("the last one out leaves nothing", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, reader), { words: '["owner","a"]' });
    await stage.grant(keys, asker(2, reader));
    await stage.ask(keys, ["release", asker(1, reader).token, "", "1"]);
    expect((await stage.redis.hkeys(keys[2])).toSorted()).toEqual(
      ["kind", "limit", "used", `h${asker(2, reader).token}`].toSorted(),
    );
    await stage.ask(keys, ["release", asker(2, reader).token, "", "1"]);
    expect(await stage.redis.exists(...keys)).toBe(0);
  });
});

onRedis("a user who may not publish", () => {
  test("puts the waiter back and fails: nobody's place is eaten, and nobody holds by it", async () => {
    const stage = await ScriptStage.open();
    try {
      await stage.redis.call("ACL", "SETUSER", "mute", "on", ">x", "~*", "+@all", "resetchannels");
      const mute = detectConnection(stage.server.client({ username: "mute", password: "x" }));
      const keys = stage.lock();
      await stage.listen(2);
      await stage.grant(keys, asker(1, writer));
      await stage.queue(keys, asker(2, reader));
      const [answer] = await stage.batch([[keys, ["release", asker(1, writer).token, "", "1"]]], {
        connection: mute,
      });
      expect(answer).toEqual(["error", expect.stringMatching(/can't publish/)]);
      expect(await stage.redis.zrange(keys[1], "0", "-1", "WITHSCORES")).toEqual([
        asker(2, reader).member,
        "2",
      ]);
      expect(await stage.redis.exists(keys[0])).toBe(0);
      expect(await stage.ask(keys, ["release", asker(1, writer).token, "", "1"])).toMatchObject({
        0: 0,
        1: 0,
      });
      expect(await stage.redis.zrange(keys[0], "0", "-1")).toEqual([asker(2, reader).token]);
      expect(await stage.heard(2)).toHaveLength(1);
    } finally {
      await stage.close();
    }
  });

  test("does not make the queue last longer by its retries", async () => {
    const stage = await ScriptStage.open();
    try {
      await stage.redis.call("ACL", "SETUSER", "mute", "on", ">x", "~*", "+@all", "resetchannels");
      const mute = detectConnection(stage.server.client({ username: "mute", password: "x" }));
      const keys = stage.lock();
      await stage.redis.zadd(keys[1], 2, asker(2, reader).member);
      await stage.redis.pexpire(keys[1], 20_000);
      for (const args of [
        acquireOf(asker(9, reader), { wait: "1" }),
        acquireOf(asker(9, reader)),
        ["release", asker(8, reader).token, "", "1"],
      ]) {
        const [answer] = await stage.batch([[keys, args]], { connection: mute });
        expect(answer, args[0]).toEqual(["error", expect.stringMatching(/can't publish/)]);
        expect(await stage.redis.pttl(keys[1]), args[0]).toBeLessThanOrEqual(20_000);
        expect(await stage.redis.zscore(keys[1], asker(2, reader).member), args[0]).toBe("2");
      }
    } finally {
      await stage.close();
    }
  });

  test("passes a reader over whose kind of channel the server does not have", async () => {
    const stage = await ScriptStage.open(["--rename-command", "SPUBLISH", ""]);
    try {
      const keys = stage.lock();
      await stage.listen(3, "p");
      await stage.grant(keys, asker(1, writer));
      await stage.queue(keys, asker(2, reader));
      await stage.queue(keys, asker(3, { ...reader, kind: "p" }));
      expect(await stage.ask(keys, ["release", asker(1, writer).token, "", "1"])).toMatchObject({
        0: 1,
        1: 0,
      });
      expect(await stage.redis.zrange(keys[0], "0", "-1")).toEqual([asker(3, reader).token]);
      expect(await stage.redis.exists(keys[1])).toBe(0);
      expect(await stage.heard(3)).toHaveLength(1);
    } finally {
      await stage.close();
    }
  });
});
