import { expect, test } from "vitest";

import { asker, onNodes } from "../../../../support/quorum-script-fixture.ts";
import type { Asker } from "../../../../support/script-fixture.ts";

onNodes("yield", (stage) => {
  const us = asker(5, { ticket: 50 });
  const earlier = asker(4, { ticket: 40 });

  test("the vote with this number goes to who stands first, with a greater one, and we stand in line", async () => {
    await stage.listen(4);
    const keys = stage.lock();
    const { first, last } = await stage.grant(keys, us, { want: 3 });
    await stage.queue(keys, earlier);
    const answer = await stage.ask(keys, yieldOf(us, first));
    const number = Number(answer[5]);
    expect(answer).toEqual([0, expect.any(Number), 0, earlier.token, "", number]);
    expect(number).toBeGreaterThan(last);
    expect((await stage.heard(4)).map((text) => text.split(" ").slice(0, 3))).toEqual([
      ["grant", earlier.token, String(number)],
    ]);
    expect(await stage.data.get(keys[0])).toBe(earlier.token);
    expect(await stage.data.zrange(keys[1])).toEqual([us.member]);
  });

  test("our place is that of our ticket", async () => {
    await stage.listen(4);
    const keys = stage.lock();
    const { first } = await stage.grant(keys, us);
    const [before, behind] = [asker(6, { ticket: 45 }), asker(7, { ticket: 55 })];
    for (const waiter of [behind, before, earlier]) {
      await stage.queue(keys, waiter);
    }
    expect((await stage.ask(keys, yieldOf(us, first)))[2]).toBe(1);
    expect(await stage.data.zrange(keys[1])).toEqual([before.member, us.member, behind.member]);
  });

  test("who stands first himself gets it again, by reply and with a greater number", async () => {
    for (const others of [[], [asker(7, { ticket: 55 })]]) {
      const keys = stage.lock();
      const { first, last } = await stage.grant(keys, us, { want: 3 });
      for (const other of others) {
        await stage.queue(keys, other);
      }
      const [status, again, end, token] = await stage.ask(keys, yieldOf(us, first, "2"));
      expect([status, token]).toEqual([1, us.token]);
      expect(again).toBeGreaterThan(last);
      expect(end).toBe(Number(again) + 1);
      expect(await stage.data.zrange(keys[1])).toEqual(others.map(({ member }) => member));
    }
  });

  test("the vote with another number stays: a late or doubled yield gives up nothing", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, us);
    const answer = await stage.ask(keys, yieldOf(us, first));
    await stage.queue(keys, earlier);
    for (const number of [first, Number(answer[1]) + 1, 0]) {
      expect(await stage.ask(keys, yieldOf(us, number))).toEqual(answer);
    }
    expect(await stage.data.get(keys[0])).toBe(us.token);
    expect(await stage.data.zrange(keys[1])).toEqual([earlier.member]);
  });

  test("where the vote is another's we only stand in line", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, earlier);
    const answer = await stage.ask(keys, yieldOf(us, first));
    expect(answer).toEqual([0, expect.any(Number), 0, earlier.token, "", first]);
    expect(await stage.data.get(keys[0])).toBe(earlier.token);
    expect(await stage.data.zrange(keys[1])).toEqual([us.member]);
  });

  test("where the lock is free it goes to who stands first, among them us", async () => {
    await stage.listen(4);
    const free = stage.lock();
    expect(await stage.ask(free, yieldOf(us, 1))).toEqual(expect.any(Number)); // the usual grant
    expect(await stage.data.get(free[0])).toBe(us.token);
    const keys = stage.lock();
    await stage.data.zadd(keys[1], 40, earlier.member);
    expect((await stage.ask(keys, yieldOf(us, 1))).slice(2, 4)).toEqual([0, earlier.token]);
    expect(await stage.heard(4)).toHaveLength(1);
  });

  test("a waiter whose process is gone is passed over; after 16 the lock is left free, and our place kept", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, us);
    for (let n = 0; n < 17; n += 1) {
      await stage.data.zadd(keys[1], n, asker(100 + n, { ticket: n }).member);
    }
    expect(await stage.ask(keys, yieldOf(us, first))).toEqual([3]);
    expect(await stage.data.get(keys[0])).toBeNull();
    const [status, again] = await stage.ask(keys, yieldOf(us, first));
    expect(status).toBe(1);
    expect(again).toBeGreaterThan(first);
  });
});

function yieldOf({ token, terms }: Asker, number: number, want = "1"): string[] {
  return ["yield", token, terms, String(number), "30000", want, ""];
}
