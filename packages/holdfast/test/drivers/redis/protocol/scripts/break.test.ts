import { afterAll, beforeAll, expect, test } from "vitest";

import { counterKey } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { onRedis } from "../../../../support/servers.ts";
import { asker, ScriptStage } from "../../../../support/script-fixture.ts";

onRedis("breakGrant", () => {
  let stage: ScriptStage;
  beforeAll(async () => {
    stage = await ScriptStage.open();
    await stage.listen(1);
    await stage.listen(2);
    await stage.listen(3, "p");
  });
  afterAll(() => stage.close());

  test("the grant that a number belongs to is ended, and its holder told why", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, asker(1), { words: '["owner","a"]' });
    const reason = 'the operator said "stop" / ä\n\u0001\u007f\\';
    expect(await stage.ask(keys, breakOf(first, reason))).toEqual([1, 0]);
    expect(await stage.redis.exists(keys[0])).toBe(0);
    const [message = ""] = await stage.heard(1);
    expect(message).toMatch(/^broken \[/);
    expect(JSON.parse(message.slice("broken ".length))).toEqual([asker(1).token, keys[0], reason]);
  });

  test("a holder that the message did not reach learns of it at its next extension, for as long as it may think it holds", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, asker(50), { ttlMs: 20_000 });
    await stage.ask(keys, breakOf(first, "maintenance"));
    expect(await stage.redis.hgetall(keys[2])).toEqual({ token: asker(50).token, broken: "maintenance" });
    expect(await stage.redis.pttl(keys[2])).toBeGreaterThan(19_000);
    expect(await stage.ask(keys, ["extend", asker(50).token, "20000", "", ""])).toBe(3);
    expect(await stage.ask(keys, ["verify", asker(50).token])).toEqual([3]);
    expect(await stage.ask(keys, ["verify", asker(51).token])).toEqual([0]);
    await stage.grant(keys, asker(2));
    expect(await stage.ask(keys, ["extend", asker(50).token, "20000", "", ""])).toBe(3);
    expect((await stage.ask(keys, ["inspect"]))[4]).toEqual([]);
    expect(await stage.ask(keys, ["release", asker(50).token, "", "1"])).toEqual([0, 0, asker(2).token]);
    expect(await stage.redis.exists(keys[2])).toBe(0);
  });

  test("every number of the block belongs to the grant, and none beside it", async () => {
    for (const [offset, broken] of [
      [-1, 0],
      [0, 1],
      [4, 1],
      [5, 0],
    ] as const) {
      const keys = stage.lock();
      const { first } = await stage.grant(keys, asker(1), { want: 5 });
      expect(await stage.ask(keys, breakOf(first + offset))).toEqual([broken, 0]);
      expect(await stage.redis.exists(keys[0])).toBe(1 - broken);
    }
    await stage.heard(1);
  });

  test("a lock of others is not broken, however much its value looks like ours", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, asker(1));
    const value = `${"y".repeat(32)}:${"z".repeat(32)}:12 ${first} 1`;
    await stage.redis.set(keys[0], value);
    expect(await stage.ask(keys, breakOf(first))).toEqual([0, 0]);
    expect(await stage.redis.get(keys[0])).toBe(value);
  });

  test("an old grant's number breaks nothing of the present one", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, asker(1));
    await stage.ask(keys, ["release", asker(1).token, "", "1"]);
    await stage.grant(keys, asker(2));
    expect(await stage.ask(keys, breakOf(first))).toEqual([0, 0]);
    expect(await stage.holder(keys)).toBe(asker(2).token);
    expect(await stage.heard(1)).toEqual([]);
  });

  test("the next waiter gets the lock in the same step", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, asker(1));
    await stage.queue(keys, asker(2));
    expect(await stage.ask(keys, breakOf(first))).toEqual([1, 0]);
    expect(await stage.holder(keys)).toBe(asker(2).token);
    expect(await stage.heard(2)).toHaveLength(1);
    expect(await stage.heard(1)).toHaveLength(1);
  });

  test("a holder that cannot be told loses the lock all the same", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, asker(50));
    expect(await stage.ask(keys, breakOf(first))).toEqual([1, 0]);
    expect(await stage.redis.exists(keys[0])).toBe(0);
  });

  test("a holder with plain pub/sub is told by plain pub/sub", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, asker(3));
    await stage.ask(keys, breakOf(first, "r", "p"));
    expect(await stage.heard(3)).toHaveLength(1);
  });

  test("a free lock and another library's are not broken", async () => {
    const free = stage.lock();
    expect(await stage.ask(free, breakOf(1))).toEqual([0, 0]);
    const foreign = stage.lock();
    for (const value of ["somebody else's", "somebody 1 10", asker(1).token, `${asker(1).token} 1`, "5"]) {
      await stage.redis.set(foreign[0], value);
      expect(await stage.ask(foreign, breakOf(5))).toEqual([0, 0]);
      expect(await stage.redis.get(foreign[0])).toBe(value);
    }
  });

  test("a lock is broken by its number also where the counter is gone", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, asker(1));
    await stage.redis.del(counterKey());
    expect(await stage.ask(keys, breakOf(first))).toEqual([1, 0]);
    expect(await stage.heard(1)).toHaveLength(1);
  });

  test("dead waiters beyond the bound are told of", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, asker(1));
    for (let n = 100; n < 120; n += 1) {
      await stage.redis.zadd(keys[1], n, asker(n).member);
    }
    expect(await stage.ask(keys, breakOf(first))).toEqual([1, 1]);
    expect(await stage.redis.exists(keys[0])).toBe(0);
    await stage.heard(1);
  });
});

function breakOf(number: number, reason = "r", kind: "s" | "p" = "s"): string[] {
  return ["breakGrant", String(number), kind, reason];
}
