import { afterAll, beforeAll, expect, test } from "vitest";

import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, asker, ScriptStage } from "../../../../support/script-fixture.ts";

const one = { share: "s1/3" };
const heavy = { share: "s3/3" };

onRedis("the kind and the limit of a lock that several may hold", () => {
  let stage: ScriptStage;
  beforeAll(async () => {
    stage = await ScriptStage.open();
    await Promise.all([stage.listen(1), stage.listen(2)]);
  });
  afterAll(() => stage.close());

  test("another limit is refused while somebody holds or waits, and changed by setLimit alone", async () => {
    const keys = stage.lock();
    const [four, mismatch] = [asker(2, { share: "s1/4" }), ["error", "LIMITMISMATCH 3"]];
    await stage.grant(keys, asker(1, heavy));
    await stage.queue(keys, asker(9, heavy));
    expect(await stage.ask(keys, acquireOf(four))).toEqual(mismatch);
    await expire(keys[0], asker(1, heavy).token);
    await stage.ask(keys, ["verify", asker(1, heavy).token]); // from here on nobody holds it
    expect(await stage.redis.exists(keys[0])).toBe(0);
    expect(await stage.ask(keys, acquireOf(four))).toEqual(mismatch);
    expect(await stage.ask(keys, ["setLimit", "4"])).toEqual([1, 0]); // who is gone does not get it
    expect(await stage.redis.exists(...keys)).toBe(0);
    await stage.grant(keys, asker(3, { share: "s1/4" }));
    expect(await stage.ask(keys, acquireOf(asker(4, one)))).toEqual(["error", "LIMITMISMATCH 4"]);
    expect(await stage.ask(keys, ["setLimit", "3"])).toEqual([1, 0]);
    await stage.grant(keys, asker(4, one));
  });

  test("of an idle semaphore no limit is remembered, and a limit that is set keeps nothing", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, one));
    await stage.ask(keys, ["release", asker(1, one).token, "", "1"]);
    expect(await stage.redis.exists(...keys)).toBe(0);
    expect(await stage.ask(keys, ["setLimit", "4"])).toEqual([1, 0]);
    expect(await stage.redis.exists(...keys)).toBe(0);
    expect(await stage.ask(keys, ["inspect"])).toEqual(["", -2, "", "", [], 0, []]);
    await stage.grant(keys, asker(2, { share: "s1/5" }));
  });

  test("a limit that was lowered is kept over the end of all holders, while somebody waits", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, { share: "s2/3" }));
    await stage.queue(keys, asker(2, { share: "s2/3" }));
    await stage.queue(keys, asker(3, { share: "s2/3" }));
    await stage.ask(keys, ["setLimit", "2"]);
    await expire(keys[0], asker(1, { share: "s2/3" }).token);
    await stage.ask(keys, ["verify", asker(1, { share: "s2/3" }).token]); // from here on nobody holds it
    await stage.ask(keys, ["release", asker(8, one).token, "", "1"]);
    expect(await stage.redis.zrange(keys[0], "0", "-1")).toEqual([asker(2, { share: "s2/3" }).token]);
    expect(await stage.redis.hgetall(keys[2])).toMatchObject({ used: "2", limit: "2" });
    expect(await stage.heard(2)).toHaveLength(1);
    expect(await stage.ask(keys, acquireOf(asker(4, one)))).toEqual(["error", "LIMITMISMATCH 2"]);
  });

  test("a limit is forgotten when the last who waits leaves, and nobody holds", async () => {
    const keys = stage.lock();
    const waiter = asker(9, heavy);
    await stage.grant(keys, asker(1, heavy));
    await stage.queue(keys, waiter);
    await expire(keys[0], asker(1, heavy).token);
    await stage.ask(keys, ["verify", asker(1, heavy).token]);
    expect(await stage.redis.hget(keys[2], "limit")).toBe("3");
    expect(await stage.ask(keys, ["release", waiter.token, waiter.terms, "1"])).toEqual([0, 0, ""]);
    expect(await stage.redis.exists(...keys)).toBe(0);
  });

  test("what is said of the terms is never there without an end", async () => {
    const waited = stage.lock();
    await stage.redis.zadd(waited[1], 2, asker(77, heavy).member); // asks before anybody holds it
    await stage.redis.zadd(waited[1], 3, asker(78, heavy).member);
    expect(await stage.ask(waited, ["setLimit", "2"])).toMatchObject({ 0: 1 });
    const held = stage.lock();
    await stage.grant(held, asker(1, one), { ttlMs: 1_000 });
    await stage.ask(held, ["setLimit", "4"]);
    const broken = stage.lock();
    const { first } = await stage.grant(broken, asker(1, one));
    await stage.ask(broken, ["breakGrant", String(first), "s", "r"]);
    for (const [, , info] of [waited, held, broken]) {
      const [exists, left] = [await stage.redis.exists(info), await stage.redis.pttl(info)];
      expect(exists === 0 || (left > 0 && left <= 62_000)).toBe(true);
    }
    await stage.heard(1);
  });

  async function expire(K: string, token: string): Promise<void> {
    await stage.redis.zadd(K, "XX", 1, token);
  }
});
