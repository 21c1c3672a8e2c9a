import { expect, test } from "vitest";

import { asker, fenceOf, onNodes } from "../../../../support/quorum-script-fixture.ts";
import { acquireOf, retentionMs } from "../../../../support/script-fixture.ts";

onNodes("raiseFence", (stage) => {
  const us = asker(1);

  test("raises the number of our grant, as a block", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, us, { want: 16 });
    const number = first + 3;
    expect(await stage.ask(keys, agreeOn(number, 16))).toEqual([1, number, number + 15]);
    expect(await stage.data.hgetall(fenceOf(keys))).toMatchObject({
      first: String(number),
      last: String(number + 15),
    });
    expect(await stage.ask(keys, ["verify", us.token])).toEqual([1, expect.any(Number), number]);
  });

  test("never lowers it, and answers what it is", async () => {
    const keys = stage.lock();
    const { first, last } = await stage.grant(keys, us, { want: 4 });
    for (const number of [first, first - 1, 0]) {
      expect(await stage.ask(keys, agreeOn(number, 2))).toEqual([1, first, last]);
    }
    expect(await stage.data.hgetall(fenceOf(keys))).toMatchObject({
      first: String(first),
      last: String(last),
    });
  });

  test("is refused where the grant is not ours, and changes nothing", async () => {
    const keys = stage.lock();
    expect(await stage.ask(keys, agreeOn(5))).toEqual([0]);
    const { first } = await stage.grant(keys, asker(1, { ticket: 2 }));
    expect(await stage.ask(keys, agreeOn(first + 5))).toEqual([0]);
    expect(await stage.data.hgetall(fenceOf(keys))).toMatchObject({
      first: String(first),
      last: String(first),
    });
  });

  test("does not go by the candidate, nor by the server's time", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, us);
    expect(await stage.ask(keys, agreeOn(first + 60_000_000), first)).toEqual([
      1,
      first + 60_000_000,
      first + 60_000_000,
    ]);
  });

  test("writes the number anew where the counter was lost", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, us);
    await stage.data.del(fenceOf(keys));
    expect(await stage.ask(keys, agreeOn(first - 7, 3))).toEqual([1, first - 7, first - 5]);
  });

  test("the counter outlives the lock by its retention", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, us, { ttlMs: 20_000 });
    await stage.data.pexpire(fenceOf(keys), 5_000);
    await stage.ask(keys, agreeOn(first + 1));
    const left = await stage.data.pttl(fenceOf(keys));
    expect(left).toBeGreaterThan(retentionMs + 19_000);
    expect(left).toBeLessThanOrEqual(retentionMs + 20_000);
    expect(await stage.data.pttl(keys[0])).toBeLessThanOrEqual(20_000);
  });

  test("the next grant begins behind the block that was agreed on", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, us, { want: 2 });
    await stage.ask(keys, agreeOn(first + 10_000_000, 2));
    await stage.ask(keys, ["release", us.token, ""]);
    expect((await stage.ask(keys, acquireOf(asker(2)), first))[1]).toBe(first + 10_000_002);
  });
});

function agreeOn(number: number, want = 1): string[] {
  return ["raiseFence", asker(1).token, String(number), String(want)];
}
