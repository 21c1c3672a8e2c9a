import { expect, test } from "vitest";

import { acquireOf, retentionMs, type Asker } from "../../../../support/script-fixture.ts";
import { asker, onNodes } from "../../../../support/quorum-script-fixture.ts";

/** What a node of a quorum does with a mutex as one server does. */
onNodes("a vote", (stage) => {
  const releaseOf = ({ token, terms }: Asker): string[] => ["release", token, terms];
  const extendOf = ({ token }: Asker, ttlMs: number, words = ""): string[] => [
    "extend",
    token,
    String(ttlMs),
    words,
    "",
  ];

  test("is the same with the same numbers for who asks again", async () => {
    const keys = stage.lock();
    const granted = await stage.grant(keys, asker(1), { want: 5 });
    expect(await stage.grant(keys, asker(1), { want: 5 })).toEqual(granted);
    expect(await stage.data.get(keys[0])).toBe(asker(1).token);
  });

  test("of who asks again or extends it raises its TTL and never shortens it", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1), { ttlMs: 30_000 });
    await stage.grant(keys, asker(1), { ttlMs: 500 });
    await stage.ask(keys, extendOf(asker(1), 1_000));
    expect(await stage.data.pttl(keys[0])).toBeGreaterThan(29_000);
    await stage.ask(keys, extendOf(asker(1), 50_000));
    expect(await stage.data.pttl(keys[0])).toBeGreaterThan(49_000);
  });

  test("of another is left alone: the whole token is compared", async () => {
    const keys = stage.lock();
    const own = asker(1, { ticket: 5 });
    await stage.grant(keys, own, { ttlMs: 5_000 });
    for (const other of [asker(1, { ticket: 6 }), asker(1, { ticket: 5, client: 9 }), asker(9)]) {
      expect(await stage.ask(keys, acquireOf(other))).toMatchObject({ 0: 0, 3: own.token });
      expect(await stage.ask(keys, extendOf(other, 30_000))).toEqual([2]);
      expect(await stage.ask(keys, ["verify", other.token])).toEqual([2]);
      expect(await stage.ask(keys, releaseOf(other))).toEqual([0, 0, own.token]);
    }
    expect(await stage.data.get(keys[0])).toBe(own.token);
    expect(await stage.data.pttl(keys[0])).toBeLessThanOrEqual(5_000);
  });

  test("that was given back is absent: an extension never creates again what is gone", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1), { words: '["owner","a"]' });
    expect(await stage.ask(keys, releaseOf(asker(1)))).toEqual([1, 0, ""]);
    expect(await stage.ask(keys, extendOf(asker(1), 30_000))).toEqual([0]);
    expect(await stage.ask(keys, releaseOf(asker(1)))).toEqual([0, 0, ""]);
    expect(await stage.ask(keys, ["inspect"])).toMatchObject({ 0: "", 1: -2, 4: [], 5: 0 });
    expect(await stage.data.pttl(keys[2])).toBe(-2);
  });

  test("is inspected: its owner's words last as long as it does", async () => {
    const keys = stage.lock();
    const { first, last } = await stage.grant(keys, asker(1), { want: 3, words: '["owner","a"]' });
    await stage.ask(keys, extendOf(asker(1), 60_000));
    expect(await stage.data.pttl(keys[2])).toBeGreaterThan(59_000);
    await stage.ask(keys, extendOf(asker(1), 1_000, '["owner","b"]'));
    expect(await stage.data.pttl(keys[2])).toBeGreaterThan(59_000);
    await stage.queue(keys, asker(2));
    const told = await stage.ask(keys, ["inspect"]);
    expect([told[0], told[2], told[3], told[5], told[6]]).toEqual([
      asker(1).token,
      String(first),
      String(last),
      1,
      [asker(2).member],
    ]);
    expect(told[4]).toEqual(expect.arrayContaining(["token", asker(1).token, "owner", "b"]));
  });

  test("is broken by a number of its block and by no other, and its holder is told", async () => {
    await stage.listen(1);
    const breakOf = (number: number): string[] => ["breakGrant", String(number), "s", "a reason"];
    for (const [offset, broken] of [
      [-1, 0],
      [5, 0],
      [4, 1],
    ] as const) {
      const keys = stage.lock();
      const { first } = await stage.grant(keys, asker(1), { want: 5 });
      expect(await stage.ask(keys, breakOf(first + offset))).toEqual([broken, 0]);
      expect(await stage.data.get(keys[0])).toBe(broken === 1 ? null : asker(1).token);
      const messages = await stage.heard(1);
      expect(messages.map((text) => text.split(" ", 1)[0])).toEqual(broken === 1 ? ["broken"] : []);
      if (broken === 1) {
        expect(await stage.ask(keys, extendOf(asker(1), 20_000))).toEqual([3]);
      }
    }
  });

  test("who waits for it leaves the queue, and only he does", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1));
    await stage.queue(keys, asker(2));
    await stage.queue(keys, asker(3));
    expect(await stage.ask(keys, releaseOf(asker(2)))).toEqual([0, 0, asker(1).token]);
    expect(await stage.data.zrange(keys[1])).toEqual([asker(3).member]);
  });

  test("a waiter of another kind stays where it is, and the release fails", async () => {
    const keys = stage.lock();
    const other = asker(2, { share: "r" });
    await stage.grant(keys, asker(1));
    await stage.data.zadd(keys[1], 2, other.member);
    const answer = await stage.ask(keys, releaseOf(asker(1)));
    expect(answer).toEqual(["error", expect.stringContaining("KINDMISMATCH")]);
    expect(await stage.data.zrange(keys[1])).toEqual([other.member]);
  });

  test("a full queue refuses, and keeps nobody whom it refused", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1));
    const bounded = (n: number) => stage.ask(keys, acquireOf(asker(n), { wait: "1" }), 0, 1);
    expect(await bounded(2)).toMatchObject({ 0: 0, 2: 0 });
    expect(await bounded(3)).toEqual([2]);
    expect(await stage.data.zrange(keys[1])).toEqual([asker(2).member]);
    expect(await bounded(2)).toMatchObject({ 0: 0, 2: 0 });
  });

  test("a try comes after everybody who waits", async () => {
    await stage.listen(1);
    const keys = stage.lock();
    await stage.data.zadd(keys[1], 1, asker(1).member);
    expect(await stage.ask(keys, acquireOf(asker(2)))).toMatchObject({ 0: 0, 2: -1, 3: asker(1).token });
    expect(await stage.heard(1)).toHaveLength(1);
  });

  test("goes to the next waiter in the step that gives it back, for what its member says", async () => {
    await stage.listen(2);
    const keys = stage.lock();
    const next = asker(2, { ttlMs: 2_000, want: 3 });
    await stage.grant(keys, asker(1));
    await stage.queue(keys, next);
    expect(await stage.ask(keys, releaseOf(asker(1)))).toEqual([1, 0, asker(2).token]);
    expect(await stage.data.get(keys[0])).toBe(next.token);
    expect(await stage.data.pttl(keys[0])).toBeLessThanOrEqual(2_000);
    expect(await stage.data.pttl(keys[3] ?? "")).toBeGreaterThan(retentionMs);
    expect(await stage.heard(2)).toHaveLength(1);
  });

  test("a key of another type is refused and not touched", async () => {
    const keys = stage.lock();
    await stage.data.hset(keys[0], "a", "1");
    for (const args of [acquireOf(asker(1)), releaseOf(asker(1)), extendOf(asker(1), 1_000), ["inspect"]]) {
      expect(await stage.ask(keys, args)).toEqual(["error", expect.any(String)]);
    }
    expect(await stage.data.hgetall(keys[0])).toEqual({ a: "1" });
  });
});
