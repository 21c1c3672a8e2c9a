import { afterAll, beforeAll, expect, test } from "vitest";

import { decodeHash } from "../../../../../src/drivers/redis/protocol/metadata.ts";
import { onRedis } from "../../../../support/servers.ts";
import { requester, ScriptFixture } from "../../../../support/script-fixture.ts";

onRedis("inspect", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
  });
  afterAll(() => fixture.close());

  test("a lock that never existed", async () => {
    expect(await fixture.run(fixture.lock(), ["inspect"])).toEqual(["", -2, "", "", [], 0, []]);
  });

  test("the holder, its remaining TTL, its numbers, its metadata, and the waiters in order", async () => {
    const keys = fixture.lock();
    const { first, last } = await fixture.grant(keys, requester(1), {
      fencingCount: 3,
      ttlMs: 20_000,
      metadata: '["owner","a"]',
    });
    await fixture.queue(keys, requester(3));
    await fixture.queue(keys, requester(2));
    const [holder, left, one, other, holderInfo, ...queue] = await fixture.run(keys, ["inspect"]);
    expect(holder).toBe(requester(1).token);
    expect(left).toBeGreaterThan(19_000);
    expect(left).toBeLessThanOrEqual(20_000);
    expect([one, other]).toEqual([String(first), String(last)]);
    expect(decodeHash(holderInfo)).toEqual(
      new Map([
        ["token", requester(1).token],
        ["owner", "a"],
      ]),
    );
    expect(queue).toEqual([2, [requester(2).member, requester(3).member]]);
  });

  test("a released lock has no holder and no number", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1), { fencingCount: 2, metadata: '["owner","a"]' });
    await fixture.run(keys, ["release", requester(1).token, "", "1"]);
    expect(await fixture.run(keys, ["inspect"])).toEqual(["", -2, "", "", [], 0, []]);
  });

  test("the lock of another program: its value up to 600 characters, and no number", async () => {
    const keys = fixture.lock();
    await fixture.redis.set(keys[0], `somebody else's ${"x".repeat(1_000)}`);
    const [holder, left, first, last] = await fixture.run(keys, ["inspect"]);
    expect(holder).toBe(`somebody else's ${"x".repeat(584)}`);
    expect([left, first, last]).toEqual([-1, "", ""]);
  });

  test("each operation of a call reports its own lock", async () => {
    const [held, free, foreign] = [fixture.lock(), fixture.lock(), fixture.lock()];
    const { first, last } = await fixture.grant(held, requester(1), { fencingCount: 2 });
    await fixture.redis.set(foreign[0], "somebody else's");
    const answers = await fixture.batch([held, free, foreign].map((keys) => [keys, ["inspect"]] as const));
    expect(answers.map((answer) => [answer[0], answer[2], answer[3]])).toEqual([
      [requester(1).token, String(first), String(last)],
      ["", "", ""],
      ["somebody else's", "", ""],
    ]);
  });

  test("metadata of another grant is not reported", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1), { metadata: '["owner","a"]' });
    await fixture.redis.set(keys[0], requester(2).token);
    expect((await fixture.run(keys, ["inspect"]))[4]).toEqual([]);
    await fixture.redis.del(keys[0]);
    expect((await fixture.run(keys, ["inspect"]))[4]).toEqual([]);
  });

  test("of a long queue the first hundred waiters are reported, and the total", async () => {
    const keys = fixture.lock();
    const members = Array.from({ length: 150 }, (_, n) => requester(1_000 + n).member);
    await fixture.redis.zadd(keys[1], ...members.flatMap((member, n) => [n, member]));
    const [, , , , , count, first] = await fixture.run(keys, ["inspect"]);
    expect([count, first]).toEqual([150, members.slice(0, 100)]);
  });

  test("an inspection changes nothing: a free lock with waiters stays free", async () => {
    const keys = fixture.lock();
    await fixture.redis.zadd(keys[1], 1, requester(1).member);
    await fixture.run(keys, ["inspect"]);
    expect(await fixture.redis.exists(keys[0])).toBe(0);
    expect(await fixture.redis.zcard(keys[1])).toBe(1);
  });

  test("keys of another type are an error", async () => {
    for (const wrong of [0, 1, 2] as const) {
      const keys = fixture.lock();
      await fixture.redis.lpush(keys[wrong], "a");
      expect((await fixture.run(keys, ["inspect"]))[0]).toBe("error");
    }
  });
});
