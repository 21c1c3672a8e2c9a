import { afterAll, beforeAll, expect, test } from "vitest";

import { counterKey } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { onRedis } from "../../../../support/servers.ts";
import { requester, ScriptFixture } from "../../../../support/script-fixture.ts";

onRedis("breakGrant", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await fixture.listen(1);
    await fixture.listen(2);
    await fixture.listen(3, "p");
  });
  afterAll(() => fixture.close());

  test("the grant with this number is ended, and its holder gets the reason", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(1), { metadata: '["owner","a"]' });
    const reason = 'the operator said "stop" / ä\n\u0001\u007f\\';
    expect(await fixture.run(keys, breakOf(first, reason))).toEqual([1, 0]);
    expect(await fixture.redis.exists(keys[0])).toBe(0);
    const [message = ""] = await fixture.received(1);
    expect(message).toMatch(/^broken \[/);
    expect(JSON.parse(message.slice("broken ".length))).toEqual([requester(1).token, keys[0], reason]);
  });

  test("a holder that missed the notification learns of the break at its next extension, while it may rely on its lease", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(50), { ttlMs: 20_000 });
    await fixture.run(keys, breakOf(first, "maintenance"));
    expect(await fixture.redis.hgetall(keys[2])).toEqual({
      token: requester(50).token,
      broken: "maintenance",
    });
    expect(await fixture.redis.pttl(keys[2])).toBeGreaterThan(19_000);
    expect(await fixture.run(keys, ["extend", requester(50).token, "20000", "", ""])).toBe(3);
    expect(await fixture.run(keys, ["verify", requester(50).token])).toEqual([3]);
    expect(await fixture.run(keys, ["verify", requester(51).token])).toEqual([0]);
    await fixture.grant(keys, requester(2));
    expect(await fixture.run(keys, ["extend", requester(50).token, "20000", "", ""])).toBe(3);
    expect((await fixture.run(keys, ["inspect"]))[4]).toEqual([]);
    expect(await fixture.run(keys, ["release", requester(50).token, "", "1"])).toEqual([
      0,
      0,
      requester(2).token,
    ]);
    expect(await fixture.redis.exists(keys[2])).toBe(0);
  });

  test("every number of the block belongs to the grant, and no number beside the block does", async () => {
    for (const [offset, broken] of [
      [-1, 0],
      [0, 1],
      [4, 1],
      [5, 0],
    ] as const) {
      const keys = fixture.lock();
      const { first } = await fixture.grant(keys, requester(1), { fencingCount: 5 });
      expect(await fixture.run(keys, breakOf(first + offset))).toEqual([broken, 0]);
      expect(await fixture.redis.exists(keys[0])).toBe(1 - broken);
    }
    await fixture.received(1);
  });

  test("a foreign lock is not broken, however similar its value is", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(1));
    const value = `${"y".repeat(32)}:${"z".repeat(32)}:12 ${first} 1`;
    await fixture.redis.set(keys[0], value);
    expect(await fixture.run(keys, breakOf(first))).toEqual([0, 0]);
    expect(await fixture.redis.get(keys[0])).toBe(value);
  });

  test("the number of an old grant does not break the present grant", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(1));
    await fixture.run(keys, ["release", requester(1).token, "", "1"]);
    await fixture.grant(keys, requester(2));
    expect(await fixture.run(keys, breakOf(first))).toEqual([0, 0]);
    expect(await fixture.holder(keys)).toBe(requester(2).token);
    expect(await fixture.received(1)).toEqual([]);
  });

  test("the next waiter gets the lock in the same step", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(1));
    await fixture.queue(keys, requester(2));
    expect(await fixture.run(keys, breakOf(first))).toEqual([1, 0]);
    expect(await fixture.holder(keys)).toBe(requester(2).token);
    expect(await fixture.received(2)).toHaveLength(1);
    expect(await fixture.received(1)).toHaveLength(1);
  });

  test("a holder that cannot be notified loses the lock as well", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(50));
    expect(await fixture.run(keys, breakOf(first))).toEqual([1, 0]);
    expect(await fixture.redis.exists(keys[0])).toBe(0);
  });

  test("a holder with plain pub/sub is notified by plain pub/sub", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(3));
    await fixture.run(keys, breakOf(first, "r", "p"));
    expect(await fixture.received(3)).toHaveLength(1);
  });

  test("a free lock and a lock of another library are not broken", async () => {
    const free = fixture.lock();
    expect(await fixture.run(free, breakOf(1))).toEqual([0, 0]);
    const foreign = fixture.lock();
    for (const value of [
      "somebody else's",
      "somebody 1 10",
      requester(1).token,
      `${requester(1).token} 1`,
      "5",
    ]) {
      await fixture.redis.set(foreign[0], value);
      expect(await fixture.run(foreign, breakOf(5))).toEqual([0, 0]);
      expect(await fixture.redis.get(foreign[0])).toBe(value);
    }
  });

  test("a lock is broken by its number even if the counter is missing", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(1));
    await fixture.redis.del(counterKey());
    expect(await fixture.run(keys, breakOf(first))).toEqual([1, 0]);
    expect(await fixture.received(1)).toHaveLength(1);
  });

  test("dead waiters beyond the bound are reported", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(1));
    for (let n = 100; n < 120; n += 1) {
      await fixture.redis.zadd(keys[1], n, requester(n).member);
    }
    expect(await fixture.run(keys, breakOf(first))).toEqual([1, 1]);
    expect(await fixture.redis.exists(keys[0])).toBe(0);
    await fixture.received(1);
  });
});

function breakOf(number: number, reason = "r", kind: "s" | "p" = "s"): string[] {
  return ["breakGrant", String(number), kind, reason];
}
