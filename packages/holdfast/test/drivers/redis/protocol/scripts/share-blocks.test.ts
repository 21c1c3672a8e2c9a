import { afterAll, beforeAll, expect, test } from "vitest";

import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, requester, ScriptFixture } from "../../../../support/script-fixture.ts";

const one = { lockMode: "s1/2" };

onRedis("a grant of a semaphore with several numbers", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await Promise.all([fixture.listen(2), fixture.listen(3)]);
  });
  afterAll(() => fixture.close());

  test("a repeat gets the same block", async () => {
    const keys = fixture.lock();
    const granted = await fixture.grant(keys, requester(1, one), { fencingCount: 17 });
    expect(granted.last - granted.first).toBe(16);
    for (const wait of ["0", "1"] as const) {
      const [, first, last] = await fixture.run(
        keys,
        acquireOf(requester(1, one), { fencingCount: 17, wait }),
      );
      expect([first, last]).toEqual([granted.first, granted.last]);
    }
    const other = await fixture.grant(keys, requester(2, one), { fencingCount: 17 });
    expect(other.first).toBeGreaterThan(granted.last);
  });

  test("a notification has the whole block, and any number of the block extends the grant", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, { lockMode: "s2/2" }));
    const waiting = requester(2, { ...one, fencingCount: 17 });
    await fixture.queue(keys, waiting, { fencingCount: 17 });
    await fixture.run(keys, ["release", requester(1, { lockMode: "s2/2" }).token, "", "1"]);
    const [message = ""] = await fixture.received(2);
    const [, token, first, last] = message.split(" ");
    expect([token, Number(last) - Number(first)]).toEqual([waiting.token, 16]);
    for (const number of [first, last]) {
      expect(await fixture.run(keys, ["extend", waiting.token, "30000", "", String(number)])).toBe(1);
    }
    expect(await fixture.run(keys, ["extend", waiting.token, "30000", "", String(Number(first) - 1)])).toBe(
      0,
    );
  });

  test("a release returns the grant of the next waiter of its client, without a notification", async () => {
    const keys = fixture.lock();
    const own = requester(3, { ...one, client: 2, fencingCount: 17, ttlMs: 9_000 });
    const { last } = await fixture.grant(keys, requester(1, { ...one, client: 2 }));
    await fixture.grant(keys, requester(4, one));
    await fixture.queue(keys, own, { fencingCount: 17 });
    const answer = await fixture.run(keys, ["release", requester(1, { ...one, client: 2 }).token, "", "1"]);
    const [, , token, first, end, ttlMs] = answer;
    expect(answer.slice(0, 2)).toEqual([1, 0]);
    expect([token, Number(end) - Number(first), ttlMs]).toEqual([own.token, 16, 9_000]);
    expect(Number(first)).toBeGreaterThan(last);
    expect(await fixture.received(2)).toEqual([]);
    expect(await fixture.run(keys, ["verify", own.token])).toEqual([1, expect.any(Number), first]);
  });

  test("the second waiter that a release grants is notified", async () => {
    const keys = fixture.lock();
    const [next, last] = [requester(3, { ...one, client: 2 }), requester(4, { ...one, client: 2 })];
    await fixture.grant(keys, requester(1, { lockMode: "s2/2", client: 2 }));
    await fixture.queue(keys, next);
    await fixture.queue(keys, last);
    const [, , token] = await fixture.run(keys, [
      "release",
      requester(1, { lockMode: "s2/2", client: 2 }).token,
      "",
      "1",
    ]);
    expect(token).toBe(next.token);
    expect(await fixture.received(2)).toEqual([expect.stringContaining(`grant ${last.token} `)]);
  });

  test("a release by another client, or sent again, sends a notification", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, { lockMode: "s2/2" }));
    await fixture.queue(keys, requester(2, one));
    const release = ["release", requester(1, { lockMode: "s2/2" }).token, "", "1"];
    expect(await fixture.run(keys, release)).toEqual([1, 0, requester(2, one).token]);
    expect(await fixture.received(2)).toHaveLength(1);
    expect(await fixture.run(keys, release)).toEqual([0, 0, requester(2, one).token]);
    expect(await fixture.received(2)).toEqual([]);
  });

  test("a break names any number of a block, and ends no other grant", async () => {
    const keys = fixture.lock();
    const block = await fixture.grant(keys, requester(1, one), { fencingCount: 5 });
    const other = await fixture.grant(keys, requester(2, one), { fencingCount: 5 });
    for (const number of [block.first - 1, other.last + 1]) {
      expect(await fixture.run(keys, ["breakGrant", String(number), "s", "test"])).toEqual([0, 0]);
    }
    expect(await fixture.run(keys, ["breakGrant", String(other.last - 1), "s", "test"])).toEqual([1, 0]);
    expect(await fixture.received(2)).toHaveLength(1);
    expect(await fixture.run(keys, ["verify", requester(1, one).token])).toMatchObject({ 0: 1 });
    expect(await fixture.run(keys, ["verify", requester(2, one).token])).toEqual([3]);
  });

  test("inspect reports the first and the last number of each holder", async () => {
    const keys = fixture.lock();
    const { first, last } = await fixture.grant(keys, requester(1, one), { fencingCount: 17 });
    const answer = await fixture.run(keys, ["inspect"]);
    expect((answer.at(-1) as unknown[][])[0]).toEqual([
      requester(1, one).token,
      expect.any(Number),
      String(first),
      1,
      "",
      String(last),
    ]);
  });

  test("a waiter of a local queue accepts the present limit if it suffices, and leaves the limit unchanged", async () => {
    const keys = fixture.lock();
    const waited = (attempt: number, permits: number) => requester(attempt, { lockMode: `a${permits}/5` });
    await fixture.grant(keys, requester(1, one));
    expect(await fixture.run(keys, acquireOf(requester(2, { lockMode: "s1/5" })))).toEqual([
      "error",
      "LIMITMISMATCH 2",
    ]);
    expect(await fixture.run(keys, acquireOf(waited(3, 3)))).toEqual(["error", "LIMITMISMATCH 2"]);
    await fixture.grant(keys, waited(3, 1));
    expect(await fixture.run(keys, acquireOf(waited(4, 1)))).toMatchObject({ 0: 0 });
    expect(await fixture.redis.hget(keys[2], "limit")).toBe("2");
    expect(await fixture.redis.zcard(keys[0])).toBe(2);
  });

  test("without holders and waiters, a waiter of a local queue sets the limit that it names", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, { lockMode: "a1/5" }));
    expect(await fixture.redis.hget(keys[2], "limit")).toBe("5");
  });

  test("a holder that an earlier version wrote has one number", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(1, one));
    await fixture.redis.hset(keys[2], `h${requester(1, one).token}`, `${first} 1`);
    const [, repeated, last] = await fixture.run(keys, acquireOf(requester(1, one), { fencingCount: 17 }));
    expect([repeated, last]).toEqual([first, first]);
  });
  test("a repeat of a grant whose numbers were evicted gets new ones, after all others", async () => {
    const keys = fixture.lock();
    const granted = [];
    for (const who of [requester(1, one), requester(2, one)]) {
      granted.push(await fixture.grant(keys, who, { fencingCount: 17 }));
    }
    await fixture.redis.del(keys[2]);
    for (const who of [requester(1, one), requester(2, one), requester(1, one)]) {
      granted.push(await fixture.grant(keys, who, { fencingCount: 17 }));
    }
    const [, before, first, second, repeated] = granted;
    expect(first?.first).toBeGreaterThan(before?.last ?? Infinity);
    expect(second?.first).toBeGreaterThan(first?.last ?? Infinity);
    expect(repeated).toEqual(first);
  });
});
