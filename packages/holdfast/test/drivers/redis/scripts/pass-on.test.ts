import { beforeAll, expect, test } from "vitest";

import { asker, onNodes } from "./quorum-stage.ts";
import type { Asker } from "./stage.ts";

onNodes("passOn", (stage) => {
  beforeAll(() => stage.listen(2));

  test("nobody waits: the lock goes to the new token by reply, with new numbers", async () => {
    const keys = stage.lock();
    const old = await stage.grant(keys, asker(1), { want: 5 });
    const [released, answer] = (await stage.ask(keys, passOn(asker(1), asker(3), { want: 2 }))) as [
      number,
      unknown[],
    ];
    const [status, first, last, token] = answer;
    expect([released, status, token]).toEqual([1, 1, asker(3).token]);
    expect(first).toBeGreaterThan(old.last);
    expect(last).toBe(Number(first) + 1);
    expect(await stage.data.get(keys[0])).toBe(asker(3).token);
    expect(await stage.data.zrange(keys[1])).toEqual([]);
  });

  test("an earlier waiter gets the lock, and the new token a place behind it, in one step", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1));
    await stage.queue(keys, asker(2));
    const [released, answer] = (await stage.ask(keys, passOn(asker(1), asker(3)))) as [number, unknown[]];
    expect(released).toBe(1);
    expect([answer[0], answer[2], answer[3]]).toEqual([0, 0, asker(2).token]);
    expect(await stage.data.get(keys[0])).toBe(asker(2).token);
    expect(await stage.data.zrange(keys[1])).toEqual([asker(3).member]);
    expect(await stage.heard(2)).toHaveLength(1);
  });

  test("a later waiter stays behind the new token's ticket", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1));
    await stage.queue(keys, asker(2, { ticket: 50 }));
    const [, answer] = (await stage.ask(keys, passOn(asker(1), asker(3, { ticket: 40 })))) as [
      number,
      unknown[],
    ];
    expect(answer[0]).toBe(1);
    expect(await stage.data.zrange(keys[1])).toHaveLength(1);
    expect(await stage.heard(2)).toEqual([]);
  });

  test("a repeat finds the same grant: not released twice, the same numbers", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1));
    const [, answer] = (await stage.ask(keys, passOn(asker(1), asker(3)))) as [number, unknown[]];
    expect(await stage.ask(keys, passOn(asker(1), asker(3)))).toEqual([0, answer]);
  });

  test("a repeat of one that was queued keeps its place", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1));
    await stage.queue(keys, asker(2));
    await stage.ask(keys, passOn(asker(1), asker(3)));
    const [released, answer] = (await stage.ask(keys, passOn(asker(1), asker(3)))) as [number, unknown[]];
    expect([released, answer[0], answer[2]]).toEqual([0, 0, 0]);
    expect(await stage.data.zrange(keys[1])).toHaveLength(1);
    await stage.heard(2);
  });

  test("a lock that was lost to another is not given up: the new token is queued", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(4));
    const [released, answer] = (await stage.ask(keys, passOn(asker(1), asker(3)))) as [number, unknown[]];
    expect([released, answer[0], answer[2], answer[3]]).toEqual([0, 0, 0, asker(4).token]);
  });

  test("a lock that has expired goes to the first, and the old token counts as not released", async () => {
    const keys = stage.lock();
    await stage.data.zadd(keys[1], 2, asker(2).member);
    const [released, answer] = (await stage.ask(keys, passOn(asker(1), asker(3)))) as [number, unknown[]];
    expect([released, answer[0], answer[3]]).toEqual([0, 0, asker(2).token]);
    expect(await stage.heard(2)).toHaveLength(1);
  });

  test("the bound on the queue does not hold here", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1));
    await stage.queue(keys, asker(2));
    await stage.queue(keys, asker(4));
    const answer = await stage.ask(keys, passOn(asker(9), asker(30)), 0, 1);
    expect((answer[1] as unknown[])[2]).toBe(2);
  });

  test("after 16 dead waiters the lock is left free, and our place is kept", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1));
    for (let n = 100; n < 117; n += 1) {
      await stage.data.zadd(keys[1], n, asker(n).member);
    }
    expect(await stage.ask(keys, passOn(asker(1), asker(3, { ticket: 500 })))).toEqual([1, [3]]);
    expect(await stage.data.get(keys[0])).toBeNull();
    const [released, answer] = (await stage.ask(keys, passOn(asker(1), asker(3, { ticket: 500 })))) as [
      number,
      unknown[],
    ];
    expect([released, answer[0]]).toEqual([0, 1]);
  });

  test("a waiter of another kind stays where it is", async () => {
    const keys = stage.lock();
    const other = asker(2, { share: "r" });
    await stage.grant(keys, asker(1));
    await stage.data.zadd(keys[1], 2, other.member);
    const answer = await stage.ask(keys, passOn(asker(1), asker(3)));
    expect(answer).toEqual(["error", expect.stringContaining("KINDMISMATCH")]);
    expect(await stage.data.zrange(keys[1])).toEqual([other.member, asker(3).member]);
  });

  test("the new owner's words replace the old one's", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1), { words: '["owner","a","reason","r"]' });
    await stage.ask(keys, passOn(asker(1), asker(3), { words: '["owner","b"]' }));
    expect(await stage.data.hgetall(keys[2])).toEqual({ token: asker(3).token, owner: "b" });
  });
});

function passOn(old: Asker, next: Asker, { want = 1, words = "" } = {}): string[] {
  return ["passOn", old.token, next.token, next.terms, "30000", String(want), words];
}
