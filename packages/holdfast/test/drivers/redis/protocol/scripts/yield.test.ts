import { expect, test } from "vitest";

import { requester, onNodes } from "../../../../support/quorum-script-fixture.ts";
import type { Requester } from "../../../../support/script-fixture.ts";

onNodes("yield", (fixture) => {
  const us = requester(5, { ticket: 50 });
  const earlier = requester(4, { ticket: 40 });

  test("the vote with this number goes to the first waiter with a larger number, and the yielding request is queued", async () => {
    await fixture.listen(4);
    const keys = fixture.lock();
    const { first, last } = await fixture.grant(keys, us, { fencingCount: 3 });
    await fixture.queue(keys, earlier);
    const answer = await fixture.run(keys, yieldOf(us, first));
    const number = Number(answer[5]);
    expect(answer).toEqual([0, expect.any(Number), 0, earlier.token, "", number]);
    expect(number).toBeGreaterThan(last);
    expect((await fixture.received(4)).map((text) => text.split(" ").slice(0, 3))).toEqual([
      ["grant", earlier.token, String(number)],
    ]);
    expect(await fixture.data.get(keys[0])).toBe(earlier.token);
    expect(await fixture.data.zrange(keys[1])).toEqual([us.member]);
  });

  test("the queue entry has the request's own ticket", async () => {
    await fixture.listen(4);
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, us);
    const [before, after] = [requester(6, { ticket: 45 }), requester(7, { ticket: 55 })];
    for (const waiter of [after, before, earlier]) {
      await fixture.queue(keys, waiter);
    }
    expect((await fixture.run(keys, yieldOf(us, first)))[2]).toBe(1);
    expect(await fixture.data.zrange(keys[1])).toEqual([before.member, us.member, after.member]);
  });

  test("a yield by the first of the queue gets the vote again, by reply and with a larger number", async () => {
    for (const others of [[], [requester(7, { ticket: 55 })]]) {
      const keys = fixture.lock();
      const { first, last } = await fixture.grant(keys, us, { fencingCount: 3 });
      for (const other of others) {
        await fixture.queue(keys, other);
      }
      const [status, again, end, token] = await fixture.run(keys, yieldOf(us, first, "2"));
      expect([status, token]).toEqual([1, us.token]);
      expect(again).toBeGreaterThan(last);
      expect(end).toBe(Number(again) + 1);
      expect(await fixture.data.zrange(keys[1])).toEqual(others.map(({ member }) => member));
    }
  });

  test("a vote with another number stays, so a late or doubled yield has no effect", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, us);
    const answer = await fixture.run(keys, yieldOf(us, first));
    await fixture.queue(keys, earlier);
    for (const number of [first, Number(answer[1]) + 1, 0]) {
      expect(await fixture.run(keys, yieldOf(us, number))).toEqual(answer);
    }
    expect(await fixture.data.get(keys[0])).toBe(us.token);
    expect(await fixture.data.zrange(keys[1])).toEqual([earlier.member]);
  });

  test("a yield of another's vote only queues the request", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, earlier);
    const answer = await fixture.run(keys, yieldOf(us, first));
    expect(answer).toEqual([0, expect.any(Number), 0, earlier.token, "", first]);
    expect(await fixture.data.get(keys[0])).toBe(earlier.token);
    expect(await fixture.data.zrange(keys[1])).toEqual([us.member]);
  });

  test("a free lock goes to the first of the queue, which may be the yielding request", async () => {
    await fixture.listen(4);
    const free = fixture.lock();
    expect(await fixture.run(free, yieldOf(us, 1))).toEqual(expect.any(Number)); // a usual grant
    expect(await fixture.data.get(free[0])).toBe(us.token);
    const keys = fixture.lock();
    await fixture.data.zadd(keys[1], 40, earlier.member);
    expect((await fixture.run(keys, yieldOf(us, 1))).slice(2, 4)).toEqual([0, earlier.token]);
    expect(await fixture.received(4)).toHaveLength(1);
  });

  test("a dead waiter is skipped, and after 16 the lock is left free with the request still queued", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, us);
    for (let n = 0; n < 17; n += 1) {
      await fixture.data.zadd(keys[1], n, requester(100 + n, { ticket: n }).member);
    }
    expect(await fixture.run(keys, yieldOf(us, first))).toEqual([3]);
    expect(await fixture.data.get(keys[0])).toBeNull();
    const [status, again] = await fixture.run(keys, yieldOf(us, first));
    expect(status).toBe(1);
    expect(again).toBeGreaterThan(first);
  });
});

function yieldOf({ token, entryTail }: Requester, number: number, want = "1"): string[] {
  return ["yield", token, entryTail, String(number), "30000", want, ""];
}
