import { afterAll, beforeAll, expect, test } from "vitest";

import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, asker, ScriptStage } from "../../../../support/script-fixture.ts";

onRedis("an acquire that comes too late", () => {
  let stage: ScriptStage;
  beforeAll(async () => {
    stage = await ScriptStage.open();
    await stage.listen(2);
  });
  afterAll(() => stage.close());

  const kinds = [{}, { share: "r" }, { share: "w" }, { share: "s1/3" }] as const;
  const waits = ["0", "1", "2", "3", "4"] as const;

  test("does nothing to a free lock, and is told so", async () => {
    for (const kind of kinds) {
      for (const wait of waits) {
        const keys = stage.lock();
        const before = await stage.counter();
        expect(await stage.ask(keys, late(asker(1, kind), wait))).toEqual([4]);
        expect(await stage.redis.exists(...keys)).toBe(0);
        expect(await stage.counter()).toBe(before);
      }
    }
  });

  test("does nothing to one that is waited for: nobody is granted, and nobody queued", async () => {
    for (const kind of kinds) {
      const keys = stage.lock();
      await stage.redis.zadd(keys[1], 2, asker(2, kind).member);
      for (const wait of waits) {
        expect(await stage.ask(keys, late(asker(1, kind), wait))).toEqual([4]);
      }
      expect(await stage.redis.zrange(keys[1], "0", "-1")).toEqual([asker(2, kind).member]);
      expect(await stage.redis.exists(keys[0])).toBe(0);
    }
    expect(await stage.heard(2)).toEqual([]);
  });

  test("gets no place behind a holder, and leaves the place that it has", async () => {
    for (const kind of [{}, { share: "w" }]) {
      const keys = stage.lock();
      await stage.grant(keys, asker(1, kind));
      await stage.queue(keys, asker(2, kind));
      await stage.redis.pexpire(keys[1], 5_000);
      for (const n of [2, 3]) {
        expect(await stage.ask(keys, late(asker(n, kind), "1"))).toEqual([4]);
      }
      expect(await stage.redis.zrange(keys[1], "0", "-1")).toEqual([asker(2, kind).member]);
      expect(await stage.redis.pttl(keys[1])).toBeLessThanOrEqual(5_000);
    }
  });

  test("does not prolong a grant of its token, and writes nothing about it", async () => {
    for (const kind of [{}, { share: "r" }]) {
      const keys = stage.lock();
      await stage.grant(keys, asker(1, kind), { ttlMs: 2_000 });
      const before = await stage.redis.dump(keys[0]);
      const words = '["owner","a"]';
      const args = acquireOf(asker(1, kind), { ttlMs: 60_000, words, wait: "1", latest: Date.now() - 1 });
      expect(await stage.ask(keys, args)).toEqual([4]);
      expect(await stage.redis.dump(keys[0])).toBe(before);
      expect(await stage.redis.pttl(keys[0])).toBeLessThanOrEqual(4_000);
    }
  });

  test("hinders nobody who comes in time, in the same call", async () => {
    const keys = stage.lock();
    const answers = await stage.batch([
      [keys, late(asker(1), "1")],
      [keys, acquireOf(asker(2), { latest: Date.now() + 10_000 })],
      [keys, late(asker(3), "0")],
    ]);
    expect(answers.map(([status]) => status)).toEqual([4, 1, 4]);
    expect(await stage.holder(keys)).toBe(asker(2).token);
  });
});

function late(who: ReturnType<typeof asker>, wait: "0" | "1" | "2" | "3" | "4"): string[] {
  return acquireOf(who, { wait, latest: Date.now() - 1 });
}
