import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { systemClock } from "../../../../../src/runtime/clock.ts";
import { KeySpace } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { scanScript } from "../../../../../src/drivers/redis/protocol/scripts.generated.ts";
import type { Connection } from "../../../../../src/drivers/redis/clients/connection.ts";
import { onRedis } from "../../../../support/servers.ts";
import { ScriptFixture } from "../../../../support/script-fixture.ts";

onRedis("scan", () => {
  let fixture: ScriptFixture;
  const server = new FakeRedis({ clock: systemClock });
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
  });
  beforeEach(async () => {
    await fixture.redis.flushall();
    server.flushAll();
  });
  afterAll(() => fixture.close());

  const names = [
    "lock:a",
    "lock:b",
    "lock:ab",
    "lock:a*c",
    "lock:a[1]",
    "lock:a?",
    "lock:ä",
    "lock:{t}x",
    "other:a",
  ];

  test("every lock with the prefix is found, in steps, and nothing else", async () => {
    const many = Array.from({ length: 300 }, (_, n) => `lock:many:${n}`);
    await fill([...names, ...many]);
    for (const connection of [fixture.connection, server.connect()]) {
      expect(await all(connection, "lock:many:*", 10)).toEqual(many.toSorted());
      expect(await all(connection, "lock:*", 1_000)).toHaveLength(300 + 8);
    }
  });

  test("what is literal in a key stays literal in the pattern", async () => {
    await fill(names);
    const space = new KeySpace("", "lock:");
    for (const prefix of ["a", "a*", "a[", "a?", "ä", "{t}", "a[1]", "z"]) {
      const found = names.filter((name) => name.startsWith(`lock:${prefix}`)).toSorted();
      for (const connection of [fixture.connection, server.connect()]) {
        expect(await all(connection, space.patternOf(prefix), 100)).toEqual(found);
      }
    }
  });

  test("patterns of Redis' own language mean the same to the fake Redis", async () => {
    await fill(names);
    for (const pattern of [
      "lock:?",
      "lock:[ab]",
      "lock:[^a]",
      "lock:[a-b]*",
      "*:a",
      "lock:a\\*c",
      "lock:[",
      "lo.k:a",
    ]) {
      expect(await all(server.connect(), pattern, 100), pattern).toEqual(
        await all(fixture.connection, pattern, 100),
      );
    }
  });

  test("queues and counters are no locks, nor are deleted keys", async () => {
    await fill(["lock:a"]);
    await fixture.redis.zadd("lock:queue", 1, "a");
    await fixture.redis.hset("lock:fence", "a", "1");
    await fixture.redis.set("lock:gone", "x", "PX", 1);
    server.call("ZADD", "lock:queue", 1, "a");
    server.call("HSET", "lock:fence", "a", "1");
    server.set("lock:gone", "x", 1);
    await expect.poll(() => fixture.redis.exists("lock:gone"), { interval: 1 }).toBe(0);
    await expect.poll(() => server.get("lock:gone"), { interval: 1 }).toBeNull();
    for (const connection of [fixture.connection, server.connect()]) {
      expect(await all(connection, "*", 100)).toEqual(["lock:a"]);
    }
  });

  async function fill(keys: readonly string[]): Promise<void> {
    await fixture.redis.mset(...keys.flatMap((key) => [key, "token"]));
    for (const key of keys) {
      server.set(key, "token");
    }
  }
});

async function all(connection: Connection, pattern: string, count: number): Promise<string[]> {
  const found = new Set<string>();
  let cursor = "0";
  do {
    const args = [cursor, pattern, String(count)];
    const [next, keys] = (await connection.run(scanScript, [], args)) as [string, string[]];
    for (const key of keys) {
      found.add(key);
    }
    cursor = next;
  } while (cursor !== "0");
  return [...found].toSorted();
}
