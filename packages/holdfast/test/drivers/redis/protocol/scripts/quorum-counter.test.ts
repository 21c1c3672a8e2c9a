import { beforeAll, expect, test } from "vitest";

import { requester, fenceOf, onNodes } from "../../../../support/quorum-script-fixture.ts";
import { acquireOf, retentionMs } from "../../../../support/script-fixture.ts";

/** A node of a quorum has a counter for each lock, which outlives the lock. */
onNodes("a node's counter", (fixture) => {
  beforeAll(() => fixture.listen(2));

  const us = requester(1);

  test("outlives every grant by its retention", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, us, { ttlMs: 1_000 });
    expect(near(await fixture.data.pttl(fenceOf(keys)), retentionMs + 1_000)).toBe(true);
    await fixture.run(keys, ["release", us.token, ""]);
    await fixture.grant(keys, requester(3), { ttlMs: 90_000 });
    expect(near(await fixture.data.pttl(fenceOf(keys)), retentionMs + 90_000)).toBe(true);
  });

  test("is extended by a repeat and by an extension that raise the TTL, and never shortened", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, us, { ttlMs: 1_000 });
    await fixture.grant(keys, us, { ttlMs: 50_000 });
    expect(near(await fixture.data.pttl(fenceOf(keys)), retentionMs + 50_000)).toBe(true);
    await fixture.run(keys, ["extend", us.token, "90000", "", ""]);
    expect(near(await fixture.data.pttl(fenceOf(keys)), retentionMs + 90_000)).toBe(true);
    await fixture.run(keys, ["extend", us.token, "1000", "", ""]);
    await fixture.grant(keys, us, { ttlMs: 1_000 });
    expect(near(await fixture.data.pttl(fenceOf(keys)), retentionMs + 90_000)).toBe(true);
  });

  test("gets a new expiry by a grant by notification", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, us, { ttlMs: 1_000 });
    await fixture.queue(keys, requester(2));
    await fixture.data.pexpire(fenceOf(keys), 5_000);
    await fixture.run(keys, ["release", us.token, ""]);
    expect(await fixture.data.pttl(fenceOf(keys))).toBeGreaterThan(retentionMs);
    await fixture.received(2);
  });

  test("that was lost leaves a holder without a number, and a repeat gets larger ones", async () => {
    const keys = fixture.lock();
    const { last } = await fixture.grant(keys, us, { fencingCount: 5 });
    await fixture.data.del(fenceOf(keys));
    const { first } = await fixture.grant(keys, us, { fencingCount: 5 });
    expect(first).toBeGreaterThan(last);
  });

  test("that was lost leaves no number for a break", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, us);
    await fixture.data.del(fenceOf(keys));
    expect(await fixture.run(keys, ["breakGrant", String(first), "s", "r"])).toEqual([0, 0]);
  });

  test("begins a block after the last one, to the last digit, and stays after the release", async () => {
    const keys = fixture.lock();
    await fixture.data.hset(fenceOf(keys), "last", "9007199254740100");
    expect(await fixture.grant(keys, us, { fencingCount: 14 })).toEqual({
      first: 9_007_199_254_740_101,
      last: 9_007_199_254_740_114,
    });
    const kept = { first: "9007199254740101", last: "9007199254740114" };
    expect(await fixture.data.hgetall(fenceOf(keys))).toMatchObject(kept);
    await fixture.run(keys, ["release", us.token, ""]);
    expect(await fixture.data.hgetall(fenceOf(keys))).toEqual(kept);
    expect((await fixture.run(keys, ["inspect"])).slice(0, 4)).toEqual(["", -2, kept.first, kept.last]);
    expect((await fixture.run(keys, acquireOf(requester(3))))[1]).toBe(9_007_199_254_740_115);
  });

  test("is written in a notification to its last digit", async () => {
    const keys = fixture.lock();
    await fixture.data.hset(fenceOf(keys), "last", "9007199254740100");
    await fixture.data.zadd(keys[1], 2, requester(2, { fencingCount: 14 }).member);
    await fixture.run(keys, ["release", us.token, ""]);
    expect((await fixture.received(2))[0]?.split(" ").slice(2, 4)).toEqual([
      "9007199254740101",
      "9007199254740114",
    ]);
  });
});

function near(ms: number, wanted: number): boolean {
  return ms <= wanted && ms > wanted - 900;
}
