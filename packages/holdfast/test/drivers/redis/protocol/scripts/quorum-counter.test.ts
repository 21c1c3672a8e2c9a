import { beforeAll, expect, test } from "vitest";

import { asker, fenceOf, onNodes } from "../../../../support/quorum-script-fixture.ts";
import { acquireOf, retentionMs } from "../../../../support/script-fixture.ts";

/** A node of a quorum has a counter for each lock, which outlives it. */
onNodes("a node's counter", (stage) => {
  beforeAll(() => stage.listen(2));

  const us = asker(1);

  test("outlives every grant by its retention", async () => {
    const keys = stage.lock();
    await stage.grant(keys, us, { ttlMs: 1_000 });
    expect(near(await stage.data.pttl(fenceOf(keys)), retentionMs + 1_000)).toBe(true);
    await stage.ask(keys, ["release", us.token, ""]);
    await stage.grant(keys, asker(3), { ttlMs: 90_000 });
    expect(near(await stage.data.pttl(fenceOf(keys)), retentionMs + 90_000)).toBe(true);
  });

  test("is prolonged by a repeat and by an extension that raise the TTL, and shortened by none", async () => {
    const keys = stage.lock();
    await stage.grant(keys, us, { ttlMs: 1_000 });
    await stage.grant(keys, us, { ttlMs: 50_000 });
    expect(near(await stage.data.pttl(fenceOf(keys)), retentionMs + 50_000)).toBe(true);
    await stage.ask(keys, ["extend", us.token, "90000", "", ""]);
    expect(near(await stage.data.pttl(fenceOf(keys)), retentionMs + 90_000)).toBe(true);
    await stage.ask(keys, ["extend", us.token, "1000", "", ""]);
    await stage.grant(keys, us, { ttlMs: 1_000 });
    expect(near(await stage.data.pttl(fenceOf(keys)), retentionMs + 90_000)).toBe(true);
  });

  test("has its expiry set anew by a grant that a message tells", async () => {
    const keys = stage.lock();
    await stage.grant(keys, us, { ttlMs: 1_000 });
    await stage.queue(keys, asker(2));
    await stage.data.pexpire(fenceOf(keys), 5_000);
    await stage.ask(keys, ["release", us.token, ""]);
    expect(await stage.data.pttl(fenceOf(keys))).toBeGreaterThan(retentionMs);
    await stage.heard(2);
  });

  test("that was lost leaves a holder without a number: a repeat is given larger ones", async () => {
    const keys = stage.lock();
    const { last } = await stage.grant(keys, us, { want: 5 });
    await stage.data.del(fenceOf(keys));
    const { first } = await stage.grant(keys, us, { want: 5 });
    expect(first).toBeGreaterThan(last);
  });

  test("that was lost leaves nothing to break by a number", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, us);
    await stage.data.del(fenceOf(keys));
    expect(await stage.ask(keys, ["breakGrant", String(first), "s", "r"])).toEqual([0, 0]);
  });

  test("begins a block behind the last one, to the last digit, and stays when the lock is given back", async () => {
    const keys = stage.lock();
    await stage.data.hset(fenceOf(keys), "last", "9007199254740100");
    expect(await stage.grant(keys, us, { want: 14 })).toEqual({
      first: 9_007_199_254_740_101,
      last: 9_007_199_254_740_114,
    });
    const kept = { first: "9007199254740101", last: "9007199254740114" };
    expect(await stage.data.hgetall(fenceOf(keys))).toMatchObject(kept);
    await stage.ask(keys, ["release", us.token, ""]);
    expect(await stage.data.hgetall(fenceOf(keys))).toEqual(kept);
    expect((await stage.ask(keys, ["inspect"])).slice(0, 4)).toEqual(["", -2, kept.first, kept.last]);
    expect((await stage.ask(keys, acquireOf(asker(3))))[1]).toBe(9_007_199_254_740_115);
  });

  test("is said in a message to the last digit", async () => {
    const keys = stage.lock();
    await stage.data.hset(fenceOf(keys), "last", "9007199254740100");
    await stage.data.zadd(keys[1], 2, asker(2, { want: 14 }).member);
    await stage.ask(keys, ["release", us.token, ""]);
    expect((await stage.heard(2))[0]?.split(" ").slice(2, 4)).toEqual([
      "9007199254740101",
      "9007199254740114",
    ]);
  });
});

function near(ms: number, wanted: number): boolean {
  return ms <= wanted && ms > wanted - 900;
}
