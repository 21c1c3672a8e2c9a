import { expect, test } from "vitest";

import { acquireOf, retentionMs, type Requester } from "../../../../support/script-fixture.ts";
import { requester, onNodes } from "../../../../support/quorum-script-fixture.ts";

/** A node of a quorum treats a mutex as a single server does in these respects. */
onNodes("a vote", (fixture) => {
  const releaseOf = ({ token, entryTail }: Requester): string[] => ["release", token, entryTail];
  const extendOf = ({ token }: Requester, ttlMs: number, holderInfo = ""): string[] => [
    "extend",
    token,
    String(ttlMs),
    holderInfo,
    "",
  ];

  test("is the same with the same numbers for a repeat", async () => {
    const keys = fixture.lock();
    const granted = await fixture.grant(keys, requester(1), { fencingCount: 5 });
    expect(await fixture.grant(keys, requester(1), { fencingCount: 5 })).toEqual(granted);
    expect(await fixture.data.get(keys[0])).toBe(requester(1).token);
  });

  test("is raised in its TTL by a repeat or an extension, and never shortened", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1), { ttlMs: 30_000 });
    await fixture.grant(keys, requester(1), { ttlMs: 500 });
    await fixture.run(keys, extendOf(requester(1), 1_000));
    expect(await fixture.data.pttl(keys[0])).toBeGreaterThan(29_000);
    await fixture.run(keys, extendOf(requester(1), 50_000));
    expect(await fixture.data.pttl(keys[0])).toBeGreaterThan(49_000);
  });

  test("gets its TTL from an extension if its key has none", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1), { ttlMs: 500 });
    await fixture.data.set(keys[0], requester(1).token);
    expect(await fixture.data.pttl(keys[0])).toBe(-1);
    await fixture.run(keys, extendOf(requester(1), 50_000));
    expect(await fixture.data.pttl(keys[0])).toBeGreaterThan(49_000);
  });

  test("of another client is left alone: the whole token is compared", async () => {
    const keys = fixture.lock();
    const own = requester(1, { ticket: 5 });
    await fixture.grant(keys, own, { ttlMs: 5_000 });
    for (const other of [requester(1, { ticket: 6 }), requester(1, { ticket: 5, client: 9 }), requester(9)]) {
      expect(await fixture.run(keys, acquireOf(other))).toMatchObject({ 0: 0, 3: own.token });
      expect(await fixture.run(keys, extendOf(other, 30_000))).toEqual([2]);
      expect(await fixture.run(keys, ["verify", other.token])).toEqual([2]);
      expect(await fixture.run(keys, releaseOf(other))).toEqual([0, 0, own.token]);
    }
    expect(await fixture.data.get(keys[0])).toBe(own.token);
    expect(await fixture.data.pttl(keys[0])).toBeLessThanOrEqual(5_000);
  });

  test("that was released is absent, and an extension never recreates it", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1), { metadata: '["owner","a"]' });
    expect(await fixture.run(keys, releaseOf(requester(1)))).toEqual([1, 0, ""]);
    expect(await fixture.run(keys, extendOf(requester(1), 30_000))).toEqual([0]);
    expect(await fixture.run(keys, releaseOf(requester(1)))).toEqual([0, 0, ""]);
    expect(await fixture.run(keys, ["inspect"])).toMatchObject({ 0: "", 1: -2, 4: [], 5: 0 });
    expect(await fixture.data.pttl(keys[2])).toBe(-2);
  });

  test("is inspected: its owner's metadata lasts as long as the vote", async () => {
    const keys = fixture.lock();
    const { first, last } = await fixture.grant(keys, requester(1), {
      fencingCount: 3,
      metadata: '["owner","a"]',
    });
    await fixture.run(keys, extendOf(requester(1), 60_000));
    expect(await fixture.data.pttl(keys[2])).toBeGreaterThan(59_000);
    await fixture.run(keys, extendOf(requester(1), 1_000, '["owner","b"]'));
    expect(await fixture.data.pttl(keys[2])).toBeGreaterThan(59_000);
    await fixture.queue(keys, requester(2));
    const inspection = await fixture.run(keys, ["inspect"]);
    expect([inspection[0], inspection[2], inspection[3], inspection[5], inspection[6]]).toEqual([
      requester(1).token,
      String(first),
      String(last),
      1,
      [requester(2).member],
    ]);
    expect(inspection[4]).toEqual(expect.arrayContaining(["token", requester(1).token, "owner", "b"]));
  });

  test("is broken by a number of its block and by no other, and its holder is notified", async () => {
    await fixture.listen(1);
    const breakOf = (number: number): string[] => ["breakGrant", String(number), "s", "a reason"];
    for (const [offset, broken] of [
      [-1, 0],
      [5, 0],
      [4, 1],
    ] as const) {
      const keys = fixture.lock();
      const { first } = await fixture.grant(keys, requester(1), { fencingCount: 5 });
      expect(await fixture.run(keys, breakOf(first + offset))).toEqual([broken, 0]);
      expect(await fixture.data.get(keys[0])).toBe(broken === 1 ? null : requester(1).token);
      const messages = await fixture.received(1);
      expect(messages.map((text) => text.split(" ", 1)[0])).toEqual(broken === 1 ? ["broken"] : []);
      if (broken === 1) {
        expect(await fixture.run(keys, extendOf(requester(1), 20_000))).toEqual([3]);
      }
    }
  });

  test("is left alone by the release of a waiter, which leaves the queue", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1));
    await fixture.queue(keys, requester(2));
    await fixture.queue(keys, requester(3));
    expect(await fixture.run(keys, releaseOf(requester(2)))).toEqual([0, 0, requester(1).token]);
    expect(await fixture.data.zrange(keys[1])).toEqual([requester(3).member]);
  });

  test("a waiter of another kind stays queued, and the release fails", async () => {
    const keys = fixture.lock();
    const other = requester(2, { lockMode: "r" });
    await fixture.grant(keys, requester(1));
    await fixture.data.zadd(keys[1], 2, other.member);
    const answer = await fixture.run(keys, releaseOf(requester(1)));
    expect(answer).toEqual(["error", expect.stringContaining("KINDMISMATCH")]);
    expect(await fixture.data.zrange(keys[1])).toEqual([other.member]);
  });

  test("refuses a waiter past the queue's bound, and stores no entry", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1));
    const bounded = (n: number) => fixture.run(keys, acquireOf(requester(n), { wait: "1" }), 0, 1);
    expect(await bounded(2)).toMatchObject({ 0: 0, 2: 0 });
    expect(await bounded(3)).toEqual([2]);
    expect(await fixture.data.zrange(keys[1])).toEqual([requester(2).member]);
    expect(await bounded(2)).toMatchObject({ 0: 0, 2: 0 });
  });

  test("is refused to a try while others wait", async () => {
    await fixture.listen(1);
    const keys = fixture.lock();
    await fixture.data.zadd(keys[1], 1, requester(1).member);
    expect(await fixture.run(keys, acquireOf(requester(2)))).toMatchObject({
      0: 0,
      2: -1,
      3: requester(1).token,
    });
    expect(await fixture.received(1)).toHaveLength(1);
  });

  test("goes to the next waiter in the step of its release, with the values of that waiter's entry", async () => {
    await fixture.listen(2);
    const keys = fixture.lock();
    const next = requester(2, { ttlMs: 2_000, fencingCount: 3 });
    await fixture.grant(keys, requester(1));
    await fixture.queue(keys, next);
    expect(await fixture.run(keys, releaseOf(requester(1)))).toEqual([1, 0, requester(2).token]);
    expect(await fixture.data.get(keys[0])).toBe(next.token);
    expect(await fixture.data.pttl(keys[0])).toBeLessThanOrEqual(2_000);
    expect(await fixture.data.pttl(keys[3] ?? "")).toBeGreaterThan(retentionMs);
    expect(await fixture.received(2)).toHaveLength(1);
  });

  test("a key of another type is refused and not touched", async () => {
    const keys = fixture.lock();
    await fixture.data.hset(keys[0], "a", "1");
    for (const args of [
      acquireOf(requester(1)),
      releaseOf(requester(1)),
      extendOf(requester(1), 1_000),
      ["inspect"],
    ]) {
      expect(await fixture.run(keys, args)).toEqual(["error", expect.any(String)]);
    }
    expect(await fixture.data.hgetall(keys[0])).toEqual({ a: "1" });
  });
});
