import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { faulty, manualClock, manualRandom } from "holdfast/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { detectConnection } from "../../../../../src/drivers/redis/clients/detect.ts";
import type { Connection } from "../../../../../src/drivers/redis/clients/connection.ts";
import { counterKey, type LockKeys } from "../../../../../src/drivers/redis/protocol/keys.ts";
import {
  executeSingleScript,
  acquireManyScript,
} from "../../../../../src/drivers/redis/protocol/scripts.generated.ts";
import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, asker, ScriptStage } from "../../../../support/script-fixture.ts";

const words = '["owner","a"]';
/** Behind all times of a test. */
const latest = "9999999999999";

onRedis("several locks in one step, on a real server and on the fake Redis", () => {
  let stage: ScriptStage;
  let real: Connection;
  beforeAll(async () => {
    stage = await ScriptStage.open();
    real = detectConnection(stage.redis);
  });
  afterAll(() => stage.close());

  /** Both are asked the same; what they answer, without what only time decides. */
  async function take(own: Connection, parts: readonly (readonly [LockKeys, string])[]): Promise<unknown> {
    const keys = [counterKey(), ...parts.flatMap(([lock]) => lock)];
    const args = [latest, ...parts.flatMap(([, token]) => [token, "20000", "1", words])];
    const [, ...answers] = (await real.run(acquireManyScript, keys, args)) as unknown[];
    const [, ...fakes] = (await own.run(acquireManyScript, keys, args)) as unknown[];
    expect(fakes.map(withoutNumbers)).toEqual(answers.map(withoutNumbers));
    return answers.map(withoutNumbers);
  }

  function open(): { own: Connection; locks: readonly LockKeys[] } {
    const server = new FakeRedis({ clock: manualClock() });
    return { own: server.connect(), locks: [stage.lock(), stage.lock(), stage.lock()] };
  }

  test("are all taken where all are free, and a repeat has the same grants", async () => {
    const { own, locks } = open();
    const parts = locks.map((lock, index) => [lock, asker(index).token] as const);
    const granted = [0, ...locks.map((_, index) => [1, "number", "number", asker(index).token])];
    expect(await take(own, parts)).toEqual(granted);
    const numbers = await Promise.all(locks.map((lock) => stage.numbersOf(lock)));
    const first = Number(numbers[0]?.first);
    expect(numbers).toEqual([0, 1, 2].map((n) => ({ first: first + n, last: first + n })));
    expect(await stage.counter()).toBe(first + 2);
    expect(await take(own, parts)).toEqual(granted);
    expect(await Promise.all(locks.map((lock) => stage.numbersOf(lock)))).toEqual(numbers);
    expect(await stage.counter()).toBe(first + 2);
    for (const [index, lock] of locks.entries()) {
      expect(await stage.holder(lock)).toBe(asker(index).token);
      expect(await stage.redis.pttl(lock[0])).toBeGreaterThan(15_000);
      expect(await stage.redis.hget(lock[2], "owner")).toBe("a");
      expect(await stage.ask(lock, ["release", asker(index).token, "", "1"])).toEqual([1, 0, ""]);
      expect(await stage.redis.exists(...lock)).toBe(0);
    }
  });

  test("are not touched where the request comes too late, and the caller is told the time", async () => {
    const { own, locks } = open();
    const keys = [counterKey(), ...locks.flat()];
    const args = ["1000", ...locks.flatMap((_, index) => [asker(index).token, "20000", "1", words])];
    for (const connection of [real, own]) {
      expect(await connection.run(acquireManyScript, keys, args)).toEqual([expect.any(Number), -1]);
    }
    expect(await stage.redis.exists(...locks.flat())).toBe(0);
  });

  test("have blocks of numbers, one behind the other; and one number each where the counter is ahead", async () => {
    const locks = [stage.lock(), stage.lock()];
    const take = async (): Promise<unknown[]> => {
      const args = [latest, ...locks.flatMap((_, index) => [asker(index).token, "20000", "5", ""])];
      const [, , ...grants] = (await real.run(
        acquireManyScript,
        [counterKey(), ...locks.flat()],
        args,
      )) as unknown[];
      return grants;
    };
    const [one] = (await take()) as [number[]];
    const first = Number(one?.[1]);
    expect(await take()).toEqual([
      [1, first, first + 4, asker(0).token],
      [1, first + 5, first + 9, asker(1).token],
    ]);
    expect(await stage.counter()).toBe(first + 9);
    const ahead = first + 3_600_000_000;
    await stage.redis.set(counterKey(), ahead);
    await stage.redis.del(...locks.flat());
    expect(await take()).toEqual([
      [1, ahead + 1, ahead + 1, asker(0).token],
      [1, ahead + 2, ahead + 2, asker(1).token],
    ]);
    await stage.redis.del(counterKey());
  });

  test("are told of as an error where one grant fails, and the numbers of the others are kept", async () => {
    const locks = [stage.lock(), stage.lock()];
    const args = [latest, asker(0).token, "20000", "5", "", asker(1).token, "none", "5", ""];
    await expect(real.run(acquireManyScript, [counterKey(), ...locks.flat()], args)).rejects.toThrow();
    const [granted] = locks as [LockKeys];
    expect(await stage.counter()).toBe((await stage.numbersOf(granted)).last + 5);
  });

  test("are not touched where one is held, or waited for", async () => {
    const { own, locks } = open();
    const [free, held, awaited] = locks as [LockKeys, LockKeys, LockKeys];
    for (const connection of [real, own]) {
      await ask(connection, held, acquireOf(asker(7)));
    }
    expect(await take(own, [[free, asker(1).token] as const, [held, asker(2).token] as const])).toEqual([
      2,
      asker(7).token,
    ]);
    expect(await stage.redis.exists(...free)).toBe(0);
    await stage.redis.zadd(awaited[1], 9, asker(9).member);
    const args = [latest, asker(1).token, "20000", "1", "", asker(3).token, "20000", "1", ""];
    const [, which, by] = (await real.run(
      acquireManyScript,
      [counterKey(), ...free, ...awaited],
      args,
    )) as unknown[];
    expect([which, by]).toEqual([2, ""]);
    expect(await stage.redis.exists(...free)).toBe(0);
  });

  test("are taken where the leases of all readers have expired, which K outlives by a second or two", async () => {
    const { own, locks } = open();
    const [lock] = locks as [LockKeys, LockKeys, LockKeys];
    const args = [latest, asker(5).token, "20000", "1", ""];
    for (const reader of [asker(1, { share: "r" }), asker(2, { share: "r" })]) {
      await ask(real, lock, acquireOf(reader));
    }
    await stage.redis.zadd(lock[0], "XX", 1, asker(1, { share: "r" }).token);
    await expect(real.run(acquireManyScript, [counterKey(), ...lock], args)).rejects.toThrow("WRONGTYPE");
    await stage.redis.zadd(lock[0], "XX", 1, asker(2, { share: "r" }).token);
    expect(await take(own, [[lock, asker(5).token] as const])).toEqual([
      0,
      [1, "number", "number", asker(5).token],
    ]);
    expect(await stage.redis.hgetall(lock[2])).toEqual({ token: asker(5).token, owner: "a" });
  });

  test("are not touched where one is a sorted set of another program", async () => {
    const { locks } = open();
    const [free, other] = locks as [LockKeys, LockKeys, LockKeys];
    await stage.redis.zadd(other[0], 1, asker(1, { share: "r" }).token, 2, "a rank");
    const args = [latest, asker(1).token, "20000", "1", "", asker(3).token, "20000", "1", ""];
    await expect(real.run(acquireManyScript, [counterKey(), ...free, ...other], args)).rejects.toThrow(
      "WRONGTYPE",
    );
    expect(await stage.redis.exists(...free)).toBe(0);
    expect(await stage.redis.zcard(other[0])).toBe(2);
  });

  test("are not touched where one is no lock", async () => {
    const { locks } = open();
    const [free, other] = locks as [LockKeys, LockKeys, LockKeys];
    await stage.redis.hset(other[0], "a", "1");
    const args = [latest, asker(1).token, "20000", "1", "", asker(3).token, "20000", "1", ""];
    await expect(real.run(acquireManyScript, [counterKey(), ...free, ...other], args)).rejects.toThrow(
      "WRONGTYPE",
    );
    expect(await stage.redis.exists(...free)).toBe(0);
  });
});

describe("several locks in one step", () => {
  test("whose answer is lost are taken back", async () => {
    const clock = manualClock();
    const server = new FakeRedis({ clock });
    const { connection, controls } = faulty(server.connect(), { clock });
    const locks = createLocks(redis(connection, { clock, random: manualRandom(1), commandTimeoutMs: 200 }));
    const warm = locks.acquire("warm");
    await clock.advance(10);
    await (await warm).release();
    controls.dropReply(1);
    const trying = locks.all(["a", "b"]).tryAcquire({ ttlMs: 30_000 });
    trying.catch(() => undefined);
    await clock.advance(201);
    await expect(trying).rejects.toMatchObject({ code: "engine-unavailable", outcome: "unknown" });
    await clock.advance(500);
    expect(server.keys().filter((key) => key.startsWith("lock:"))).toEqual([]);
    await locks.close();
  });
});

async function ask(connection: Connection, keys: LockKeys, args: readonly string[]): Promise<void> {
  await connection.run(executeSingleScript, [counterKey(), ...keys], ["100", ...args]);
}

function withoutNumbers(answer: unknown): unknown {
  return Array.isArray(answer)
    ? answer.map((part) => (typeof part === "number" && part > 1 ? "number" : part))
    : answer;
}
