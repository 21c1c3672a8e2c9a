import { afterAll, beforeAll, expect, test } from "vitest";

import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, requester, ScriptFixture } from "../../../../support/script-fixture.ts";

const one = { lockMode: "s1/3" };
const heavy = { lockMode: "s3/3" };

onRedis("the kind and the limit of a shared lock", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await Promise.all([fixture.listen(1), fixture.listen(2)]);
  });
  afterAll(() => fixture.close());

  test("another limit is refused while holders or waiters exist, and only setLimit changes the limit", async () => {
    const keys = fixture.lock();
    const [four, mismatch] = [requester(2, { lockMode: "s1/4" }), ["error", "LIMITMISMATCH 3"]];
    await fixture.grant(keys, requester(1, heavy));
    await fixture.queue(keys, requester(9, heavy));
    expect(await fixture.run(keys, acquireOf(four))).toEqual(mismatch);
    await expire(keys[0], requester(1, heavy).token);
    await fixture.run(keys, ["verify", requester(1, heavy).token]); // from here on there is no holder
    expect(await fixture.redis.exists(keys[0])).toBe(0);
    expect(await fixture.run(keys, acquireOf(four))).toEqual(mismatch);
    expect(await fixture.run(keys, ["setLimit", "4"])).toEqual([1, 0]); // a dead waiter does not get it
    expect(await fixture.redis.exists(...keys)).toBe(0);
    await fixture.grant(keys, requester(3, { lockMode: "s1/4" }));
    expect(await fixture.run(keys, acquireOf(requester(4, one)))).toEqual(["error", "LIMITMISMATCH 4"]);
    expect(await fixture.run(keys, ["setLimit", "3"])).toEqual([1, 0]);
    await fixture.grant(keys, requester(4, one));
  });

  test("the limit of an idle semaphore is not remembered, and setting the limit stores nothing", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, one));
    await fixture.run(keys, ["release", requester(1, one).token, "", "1"]);
    expect(await fixture.redis.exists(...keys)).toBe(0);
    expect(await fixture.run(keys, ["setLimit", "4"])).toEqual([1, 0]);
    expect(await fixture.redis.exists(...keys)).toBe(0);
    expect(await fixture.run(keys, ["inspect"])).toEqual(["", -2, "", "", [], 0, []]);
    await fixture.grant(keys, requester(2, { lockMode: "s1/5" }));
  });

  test("a lowered limit outlasts all holders while waiters exist", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, { lockMode: "s2/3" }));
    await fixture.queue(keys, requester(2, { lockMode: "s2/3" }));
    await fixture.queue(keys, requester(3, { lockMode: "s2/3" }));
    await fixture.run(keys, ["setLimit", "2"]);
    await expire(keys[0], requester(1, { lockMode: "s2/3" }).token);
    await fixture.run(keys, ["verify", requester(1, { lockMode: "s2/3" }).token]); // from here on there is no holder
    await fixture.run(keys, ["release", requester(8, one).token, "", "1"]);
    expect(await fixture.redis.zrange(keys[0], "0", "-1")).toEqual([
      requester(2, { lockMode: "s2/3" }).token,
    ]);
    expect(await fixture.redis.hgetall(keys[2])).toMatchObject({ used: "2", limit: "2" });
    expect(await fixture.received(2)).toHaveLength(1);
    expect(await fixture.run(keys, acquireOf(requester(4, one)))).toEqual(["error", "LIMITMISMATCH 2"]);
  });

  test("a limit is forgotten when the last waiter leaves, and there is no holder", async () => {
    const keys = fixture.lock();
    const waiter = requester(9, heavy);
    await fixture.grant(keys, requester(1, heavy));
    await fixture.queue(keys, waiter);
    await expire(keys[0], requester(1, heavy).token);
    await fixture.run(keys, ["verify", requester(1, heavy).token]);
    expect(await fixture.redis.hget(keys[2], "limit")).toBe("3");
    expect(await fixture.run(keys, ["release", waiter.token, waiter.entryTail, "1"])).toEqual([0, 0, ""]);
    expect(await fixture.redis.exists(...keys)).toBe(0);
  });

  test("the record of the limit always has an expiry", async () => {
    const waited = fixture.lock();
    await fixture.redis.zadd(waited[1], 2, requester(77, heavy).member); // queued before there is a holder
    await fixture.redis.zadd(waited[1], 3, requester(78, heavy).member);
    expect(await fixture.run(waited, ["setLimit", "2"])).toMatchObject({ 0: 1 });
    const held = fixture.lock();
    await fixture.grant(held, requester(1, one), { ttlMs: 1_000 });
    await fixture.run(held, ["setLimit", "4"]);
    const broken = fixture.lock();
    const { first } = await fixture.grant(broken, requester(1, one));
    await fixture.run(broken, ["breakGrant", String(first), "s", "r"]);
    for (const [, , info] of [waited, held, broken]) {
      const [exists, left] = [await fixture.redis.exists(info), await fixture.redis.pttl(info)];
      expect(exists === 0 || (left > 0 && left <= 62_000)).toBe(true);
    }
    await fixture.received(1);
  });

  async function expire(K: string, token: string): Promise<void> {
    await fixture.redis.zadd(K, "XX", 1, token);
  }
});
