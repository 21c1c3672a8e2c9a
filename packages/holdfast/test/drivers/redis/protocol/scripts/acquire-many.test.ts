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
import { acquireOf, requester, ScriptFixture } from "../../../../support/script-fixture.ts";

const metadata = '["owner","a"]';
/** After all times of a test. */
const latest = "9999999999999";

onRedis("several locks in one step, on a real server and on the fake Redis", () => {
  let fixture: ScriptFixture;
  let real: Connection;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    real = detectConnection(fixture.redis);
  });
  afterAll(() => fixture.close());

  /**
   * Sends the same request to both, and expects equal replies. Returns the reply without numbers, which depend
   * on the time.
   */
  async function take(own: Connection, parts: readonly (readonly [LockKeys, string])[]): Promise<unknown> {
    const keys = [counterKey(), ...parts.flatMap(([lock]) => lock)];
    const args = [latest, ...parts.flatMap(([, token]) => [token, "20000", "1", metadata])];
    const [, ...answers] = (await real.run(acquireManyScript, keys, args)) as unknown[];
    const [, ...fakes] = (await own.run(acquireManyScript, keys, args)) as unknown[];
    expect(fakes.map(withoutNumbers)).toEqual(answers.map(withoutNumbers));
    return answers.map(withoutNumbers);
  }

  function open(): { own: Connection; locks: readonly LockKeys[] } {
    const server = new FakeRedis({ clock: manualClock() });
    return { own: server.connect(), locks: [fixture.lock(), fixture.lock(), fixture.lock()] };
  }

  test("are acquired if all are free, and a repeat gets the same grants", async () => {
    const { own, locks } = open();
    const parts = locks.map((lock, index) => [lock, requester(index).token] as const);
    const granted = [0, ...locks.map((_, index) => [1, "number", "number", requester(index).token])];
    expect(await take(own, parts)).toEqual(granted);
    const numbers = await Promise.all(locks.map((lock) => fixture.numbersOf(lock)));
    const first = Number(numbers[0]?.first);
    expect(numbers).toEqual([0, 1, 2].map((n) => ({ first: first + n, last: first + n })));
    expect(await fixture.counter()).toBe(first + 2);
    expect(await take(own, parts)).toEqual(granted);
    expect(await Promise.all(locks.map((lock) => fixture.numbersOf(lock)))).toEqual(numbers);
    expect(await fixture.counter()).toBe(first + 2);
    for (const [index, lock] of locks.entries()) {
      expect(await fixture.holder(lock)).toBe(requester(index).token);
      expect(await fixture.redis.pttl(lock[0])).toBeGreaterThan(15_000);
      expect(await fixture.redis.hget(lock[2], "owner")).toBe("a");
      expect(await fixture.run(lock, ["release", requester(index).token, "", "1"])).toEqual([1, 0, ""]);
      expect(await fixture.redis.exists(...lock)).toBe(0);
    }
  });

  test("are not touched if the request comes too late, and the caller gets the server's time", async () => {
    const { own, locks } = open();
    const keys = [counterKey(), ...locks.flat()];
    const args = ["1000", ...locks.flatMap((_, index) => [requester(index).token, "20000", "1", metadata])];
    for (const connection of [real, own]) {
      expect(await connection.run(acquireManyScript, keys, args)).toEqual([expect.any(Number), -1]);
    }
    expect(await fixture.redis.exists(...locks.flat())).toBe(0);
  });

  test("get consecutive blocks of numbers, and one number each if the counter is ahead", async () => {
    const locks = [fixture.lock(), fixture.lock()];
    const take = async (): Promise<unknown[]> => {
      const args = [latest, ...locks.flatMap((_, index) => [requester(index).token, "20000", "5", ""])];
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
      [1, first, first + 4, requester(0).token],
      [1, first + 5, first + 9, requester(1).token],
    ]);
    expect(await fixture.counter()).toBe(first + 9);
    const ahead = first + 3_600_000_000;
    await fixture.redis.set(counterKey(), ahead);
    await fixture.redis.del(...locks.flat());
    expect(await take()).toEqual([
      [1, ahead + 1, ahead + 1, requester(0).token],
      [1, ahead + 2, ahead + 2, requester(1).token],
    ]);
    await fixture.redis.del(counterKey());
  });

  test("are reported as an error if one grant fails, and the numbers of the other grants are kept", async () => {
    const locks = [fixture.lock(), fixture.lock()];
    const args = [latest, requester(0).token, "20000", "5", "", requester(1).token, "none", "5", ""];
    await expect(real.run(acquireManyScript, [counterKey(), ...locks.flat()], args)).rejects.toThrow();
    const [granted] = locks as [LockKeys];
    expect(await fixture.counter()).toBe((await fixture.numbersOf(granted)).last + 5);
  });

  test("are not touched if one is held or has waiters", async () => {
    const { own, locks } = open();
    const [free, held, awaited] = locks as [LockKeys, LockKeys, LockKeys];
    for (const connection of [real, own]) {
      await ask(connection, held, acquireOf(requester(7)));
    }
    expect(
      await take(own, [[free, requester(1).token] as const, [held, requester(2).token] as const]),
    ).toEqual([2, requester(7).token]);
    expect(await fixture.redis.exists(...free)).toBe(0);
    await fixture.redis.zadd(awaited[1], 9, requester(9).member);
    const args = [latest, requester(1).token, "20000", "1", "", requester(3).token, "20000", "1", ""];
    const [, which, by] = (await real.run(
      acquireManyScript,
      [counterKey(), ...free, ...awaited],
      args,
    )) as unknown[];
    expect([which, by]).toEqual([2, ""]);
    expect(await fixture.redis.exists(...free)).toBe(0);
  });

  test("are acquired if the leases of all readers have expired, although their lock key lasts a second or two longer", async () => {
    const { own, locks } = open();
    const [lock] = locks as [LockKeys, LockKeys, LockKeys];
    const args = [latest, requester(5).token, "20000", "1", ""];
    for (const reader of [requester(1, { lockMode: "r" }), requester(2, { lockMode: "r" })]) {
      await ask(real, lock, acquireOf(reader));
    }
    await fixture.redis.zadd(lock[0], "XX", 1, requester(1, { lockMode: "r" }).token);
    await expect(real.run(acquireManyScript, [counterKey(), ...lock], args)).rejects.toThrow("WRONGTYPE");
    await fixture.redis.zadd(lock[0], "XX", 1, requester(2, { lockMode: "r" }).token);
    expect(await take(own, [[lock, requester(5).token] as const])).toEqual([
      0,
      [1, "number", "number", requester(5).token],
    ]);
    expect(await fixture.redis.hgetall(lock[2])).toEqual({ token: requester(5).token, owner: "a" });
  });

  test("are not touched if one is a sorted set of another program", async () => {
    const { locks } = open();
    const [free, other] = locks as [LockKeys, LockKeys, LockKeys];
    await fixture.redis.zadd(other[0], 1, requester(1, { lockMode: "r" }).token, 2, "a rank");
    const args = [latest, requester(1).token, "20000", "1", "", requester(3).token, "20000", "1", ""];
    await expect(real.run(acquireManyScript, [counterKey(), ...free, ...other], args)).rejects.toThrow(
      "WRONGTYPE",
    );
    expect(await fixture.redis.exists(...free)).toBe(0);
    expect(await fixture.redis.zcard(other[0])).toBe(2);
  });

  test("are not touched if one is no lock", async () => {
    const { locks } = open();
    const [free, other] = locks as [LockKeys, LockKeys, LockKeys];
    await fixture.redis.hset(other[0], "a", "1");
    const args = [latest, requester(1).token, "20000", "1", "", requester(3).token, "20000", "1", ""];
    await expect(real.run(acquireManyScript, [counterKey(), ...free, ...other], args)).rejects.toThrow(
      "WRONGTYPE",
    );
    expect(await fixture.redis.exists(...free)).toBe(0);
  });
});

describe("several locks in one step", () => {
  test("whose reply is lost are cleaned up", async () => {
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
