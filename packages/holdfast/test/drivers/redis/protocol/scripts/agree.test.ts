import { expect, test } from "vitest";

import { requester, fenceOf, onNodes } from "../../../../support/quorum-script-fixture.ts";
import { acquireOf, retentionMs } from "../../../../support/script-fixture.ts";

onNodes("raiseFence", (fixture) => {
  const us = requester(1);

  test("raises the number of the grant, as a block", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, us, { fencingCount: 16 });
    const number = first + 3;
    expect(await fixture.run(keys, agreeOn(number, 16))).toEqual([1, number, number + 15]);
    expect(await fixture.data.hgetall(fenceOf(keys))).toMatchObject({
      first: String(number),
      last: String(number + 15),
    });
    expect(await fixture.run(keys, ["verify", us.token])).toEqual([1, expect.any(Number), number]);
  });

  test("never lowers the number, and returns the present one", async () => {
    const keys = fixture.lock();
    const { first, last } = await fixture.grant(keys, us, { fencingCount: 4 });
    for (const number of [first, first - 1, 0]) {
      expect(await fixture.run(keys, agreeOn(number, 2))).toEqual([1, first, last]);
    }
    expect(await fixture.data.hgetall(fenceOf(keys))).toMatchObject({
      first: String(first),
      last: String(last),
    });
  });

  test("is refused without the grant, and changes nothing", async () => {
    const keys = fixture.lock();
    expect(await fixture.run(keys, agreeOn(5))).toEqual([0]);
    const { first } = await fixture.grant(keys, requester(1, { ticket: 2 }));
    expect(await fixture.run(keys, agreeOn(first + 5))).toEqual([0]);
    expect(await fixture.data.hgetall(fenceOf(keys))).toMatchObject({
      first: String(first),
      last: String(first),
    });
  });

  test("does not depend on the proposed number, nor on the server's time", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, us);
    expect(await fixture.run(keys, agreeOn(first + 60_000_000), first)).toEqual([
      1,
      first + 60_000_000,
      first + 60_000_000,
    ]);
  });

  test("writes the number anew if the counter was lost", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, us);
    await fixture.data.del(fenceOf(keys));
    expect(await fixture.run(keys, agreeOn(first - 7, 3))).toEqual([1, first - 7, first - 5]);
  });

  test("the counter outlives the lock by its retention", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, us, { ttlMs: 20_000 });
    await fixture.data.pexpire(fenceOf(keys), 5_000);
    await fixture.run(keys, agreeOn(first + 1));
    const left = await fixture.data.pttl(fenceOf(keys));
    expect(left).toBeGreaterThan(retentionMs + 19_000);
    expect(left).toBeLessThanOrEqual(retentionMs + 20_000);
    expect(await fixture.data.pttl(keys[0])).toBeLessThanOrEqual(20_000);
  });

  test("the next grant begins after the agreed block", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, us, { fencingCount: 2 });
    await fixture.run(keys, agreeOn(first + 10_000_000, 2));
    await fixture.run(keys, ["release", us.token, ""]);
    expect((await fixture.run(keys, acquireOf(requester(2)), first))[1]).toBe(first + 10_000_002);
  });
});

function agreeOn(number: number, want = 1): string[] {
  return ["raiseFence", requester(1).token, String(number), String(want)];
}
