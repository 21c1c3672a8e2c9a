import { afterAll, beforeAll, expect, test } from "vitest";

import type { LockKeys } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, requester, ScriptFixture, type Requester } from "../../../../support/script-fixture.ts";

type Operation = readonly [LockKeys, readonly string[]];

const usualAcquire = { time: 1, exists: 1, get: 1, set: 2 };
const usualRelease = { time: 1, getrange: 1, zpopmin: 1, del: 1 };

/** The commands that the script runs for usual operations, by the server's own count. */
onRedis("the commands of", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await fixture.grant(fixture.lock(), requester(1)); // the server has loaded the script now
    await fixture.listen(2);
  });
  afterAll(() => fixture.close());

  test("an acquire of a free lock: the time, the counter and the lock key, and no queue is touched", async () => {
    expect(await commandsOf([[fixture.lock(), acquireOf(requester(1))]])).toEqual(usualAcquire);
    for (const options of [
      { wait: "1" },
      { wait: "2" },
      { fencingCount: 17 },
      { wait: "4", ttlMs: 5_000 },
    ] as const) {
      expect(await commandsOf([[fixture.lock(), acquireOf(requester(1), options)]])).toEqual(usualAcquire);
    }
  });

  test("a release without waiters", async () => {
    const keys = await held();
    expect(await commandsOf([[keys, releaseOf(requester(1))]])).toEqual(usualRelease);
    const withMetadata = await held({ metadata: '["owner","a"]' });
    expect(await commandsOf([[withMetadata, releaseOf(requester(1))]])).toEqual(usualRelease); // the metadata is deleted with the lock key
    expect(await fixture.redis.exists(...withMetadata)).toBe(0);
  });

  test("an extension", async () => {
    const keys = await held();
    const { first } = await fixture.numbersOf(keys);
    const extension = ["extend", requester(1).token, "60000", "", String(first)];
    expect(await commandsOf([[keys, extension]])).toEqual({ time: 1, getrange: 1, pttl: 1, pexpire: 1 });
  });

  test("an extension of a grant with metadata, whose TTL is extended as well", async () => {
    const keys = await held({ metadata: '["owner","a"]' });
    const extension = ["extend", requester(1).token, "60000", "", ""];
    expect(await commandsOf([[keys, extension]])).toEqual({ time: 1, getrange: 1, pexpire: 2, pttl: 1 });
  });

  test("a grant with metadata: two more for the metadata and its TTL", async () => {
    const words = { metadata: '["owner","a"]' };
    const commands = await commandsOf([[fixture.lock(), acquireOf(requester(1), words)]]);
    expect(commands).toMatchObject({ time: 1, get: 1, set: 2, hset: 1, pexpire: 1 });
    expect(Object.keys(commands)).not.toContain("zadd");
  });

  test("a free permit, and its release beside another holder", async () => {
    const keys = fixture.lock();
    const [one, other] = [requester(1, { lockMode: "s1/4" }), requester(2, { lockMode: "s1/4" })];
    await fixture.grant(keys, one);
    const acquire = { time: 1, get: 1, set: 1, hmget: 1, hset: 1, zadd: 1, zrange: 2, pttl: 1 };
    expect(await commandsOf([[keys, acquireOf(other, { fencingCount: 17 })]])).toMatchObject(acquire);
    const release = { time: 1, hmget: 1, hset: 1, hdel: 1, zrem: 1 };
    expect(await commandsOf([[keys, releaseOf(other)]])).toMatchObject(release);
  });

  test("several operations in one call: the time and the counter are read once, and written twice at the most", async () => {
    const keys = Array.from({ length: 8 }, () => fixture.lock());
    const acquires = keys.map((own) => [own, acquireOf(requester(1))] as const);
    expect(await commandsOf(acquires)).toEqual({ time: 1, exists: 8, get: 1, set: 8 + 2 });
    const releases = keys.map((own) => [own, releaseOf(requester(1))] as const);
    expect(await commandsOf(releases)).toEqual({ time: 1, getrange: 8, zpopmin: 8, del: 8 });
  });

  test("an operation without a grant: the counter is neither read nor written", async () => {
    const keys = await held();
    for (const args of [
      acquireOf(requester(3)),
      acquireOf(requester(4), { wait: "2" }),
      acquireOf(requester(1)),
      ["verify", requester(1).token],
      ["inspect"],
      ["release", requester(9).token, "", "1"],
    ]) {
      const commands = Object.keys(await commandsOf([[keys, args]]));
      expect(commands, args[0]).not.toContain("get");
      expect(commands, args[0]).not.toContain("set");
    }
  });

  test("a release that hands the lock to another request of its client: no notification, and no request for the server's run", async () => {
    const keys = await held();
    const next = requester(5, { client: 1 });
    await fixture.queue(keys, next);
    const commands = await commandsOf([[keys, releaseOf(requester(1))]]);
    expect(commands).toEqual({ time: 1, getrange: 2, zpopmin: 1, pttl: 1, get: 1, set: 2 });
    expect(await fixture.holder(keys)).toBe(next.token);
  });

  test("a release that hands the lock to another client: the run of the server is read once in a call", async () => {
    const locks = [await held(), await held(), await held()];
    for (const keys of locks) {
      await fixture.queue(keys, requester(2));
    }
    const commands = await commandsOf(locks.map((keys) => [keys, releaseOf(requester(1))] as const));
    expect(commands).toMatchObject({ info: 1, spublish: 3, get: 1, set: 3 + 2 });
    expect(await fixture.received(2)).toHaveLength(3);
  });

  async function held(options: { metadata?: string } = {}): Promise<LockKeys> {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1), options);
    return keys;
  }

  async function commandsOf(operations: readonly Operation[]): Promise<Record<string, number>> {
    await fixture.redis.config("RESETSTAT");
    const answers = await fixture.batch(operations);
    const info = await fixture.redis.info("commandstats");
    expect(answers.filter((answer) => (answer as unknown) !== 1 && answer[0] === "error")).toEqual([]);
    const counts = Array.from(info.matchAll(/^cmdstat_([\w|]+):calls=(\d+)/gm), ([, name = "", calls]) => {
      return [name, Number(calls)] as const;
    });
    expect(counts).toContainEqual(["evalsha", 1]);
    return Object.fromEntries(counts.filter(([name]) => name !== "evalsha" && !name.startsWith("config|")));
  }
});

function releaseOf({ token, entryTail }: Requester): string[] {
  return ["release", token, entryTail, "1"];
}
