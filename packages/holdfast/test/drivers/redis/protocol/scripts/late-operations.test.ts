import { afterAll, beforeAll, expect, test } from "vitest";

import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, requester, ScriptFixture } from "../../../../support/script-fixture.ts";

onRedis("an acquire that comes too late", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await fixture.listen(2);
  });
  afterAll(() => fixture.close());

  const kinds = [{}, { lockMode: "r" }, { lockMode: "w" }, { lockMode: "s1/3" }] as const;
  const waits = ["0", "1", "2", "3", "4"] as const;

  test("does nothing to a free lock, and its reply says so", async () => {
    for (const kind of kinds) {
      for (const wait of waits) {
        const keys = fixture.lock();
        const before = await fixture.counter();
        expect(await fixture.run(keys, late(requester(1, kind), wait))).toEqual([4]);
        expect(await fixture.redis.exists(...keys)).toBe(0);
        expect(await fixture.counter()).toBe(before);
      }
    }
  });

  test("does nothing to a lock with waiters: none is granted, and none queued", async () => {
    for (const kind of kinds) {
      const keys = fixture.lock();
      await fixture.redis.zadd(keys[1], 2, requester(2, kind).member);
      for (const wait of waits) {
        expect(await fixture.run(keys, late(requester(1, kind), wait))).toEqual([4]);
      }
      expect(await fixture.redis.zrange(keys[1], "0", "-1")).toEqual([requester(2, kind).member]);
      expect(await fixture.redis.exists(keys[0])).toBe(0);
    }
    expect(await fixture.received(2)).toEqual([]);
  });

  test("gets no queue entry after a holder, and leaves its existing entry", async () => {
    for (const kind of [{}, { lockMode: "w" }]) {
      const keys = fixture.lock();
      await fixture.grant(keys, requester(1, kind));
      await fixture.queue(keys, requester(2, kind));
      await fixture.redis.pexpire(keys[1], 5_000);
      for (const n of [2, 3]) {
        expect(await fixture.run(keys, late(requester(n, kind), "1"))).toEqual([4]);
      }
      expect(await fixture.redis.zrange(keys[1], "0", "-1")).toEqual([requester(2, kind).member]);
      expect(await fixture.redis.pttl(keys[1])).toBeLessThanOrEqual(5_000);
    }
  });

  test("does not extend a grant of its token, nor write its metadata", async () => {
    for (const kind of [{}, { lockMode: "r" }]) {
      const keys = fixture.lock();
      await fixture.grant(keys, requester(1, kind), { ttlMs: 2_000 });
      const before = await fixture.redis.dump(keys[0]);
      const metadata = '["owner","a"]';
      const args = acquireOf(requester(1, kind), {
        ttlMs: 60_000,
        metadata,
        wait: "1",
        latest: Date.now() - 1,
      });
      expect(await fixture.run(keys, args)).toEqual([4]);
      expect(await fixture.redis.dump(keys[0])).toBe(before);
      expect(await fixture.redis.pttl(keys[0])).toBeLessThanOrEqual(4_000);
    }
  });

  test("does not affect timely requests in the same call", async () => {
    const keys = fixture.lock();
    const answers = await fixture.batch([
      [keys, late(requester(1), "1")],
      [keys, acquireOf(requester(2), { latest: Date.now() + 10_000 })],
      [keys, late(requester(3), "0")],
    ]);
    expect(answers.map(([status]) => status)).toEqual([4, 1, 4]);
    expect(await fixture.holder(keys)).toBe(requester(2).token);
  });
});

function late(who: ReturnType<typeof requester>, wait: "0" | "1" | "2" | "3" | "4"): string[] {
  return acquireOf(who, { wait, latest: Date.now() - 1 });
}
