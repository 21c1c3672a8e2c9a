import { afterAll, beforeAll, expect, test } from "vitest";

import type { LockKeys } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, asker, ScriptStage, type Asker } from "../../../../support/script-fixture.ts";

type Operation = readonly [LockKeys, readonly string[]];

const usualAcquire = { time: 1, exists: 1, get: 1, set: 2 };
const usualRelease = { time: 1, getrange: 1, zpopmin: 1, del: 1 };

/** What the usual operations cost a server: the commands that their script runs, counted by the server itself. */
onRedis("the commands of", () => {
  let stage: ScriptStage;
  beforeAll(async () => {
    stage = await ScriptStage.open();
    await stage.grant(stage.lock(), asker(1)); // the server knows the script from here on
    await stage.listen(2);
  });
  afterAll(() => stage.close());

  test("an acquire of a free lock: the time, the counter and K, and no queue is touched", async () => {
    expect(await commandsOf([[stage.lock(), acquireOf(asker(1))]])).toEqual(usualAcquire);
    for (const options of [
      { wait: "1" },
      { wait: "2" },
      { want: 17 },
      { wait: "4", ttlMs: 5_000 },
    ] as const) {
      expect(await commandsOf([[stage.lock(), acquireOf(asker(1), options)]])).toEqual(usualAcquire);
    }
  });

  test("a release for which nobody waits", async () => {
    const keys = await held();
    expect(await commandsOf([[keys, releaseOf(asker(1))]])).toEqual(usualRelease);
    const inLine = await held({ words: '["owner","a"]' });
    expect(await commandsOf([[inLine, releaseOf(asker(1))]])).toEqual(usualRelease); // info goes with K
    expect(await stage.redis.exists(...inLine)).toBe(0);
  });

  test("an extension", async () => {
    const keys = await held();
    const { first } = await stage.numbersOf(keys);
    const extension = ["extend", asker(1).token, "60000", "", String(first)];
    expect(await commandsOf([[keys, extension]])).toEqual({ time: 1, getrange: 1, pexpire: 1 });
  });

  test("an extension of a grant with words: these last as long", async () => {
    const keys = await held({ words: '["owner","a"]' });
    const extension = ["extend", asker(1).token, "60000", "", ""];
    expect(await commandsOf([[keys, extension]])).toEqual({ time: 1, getrange: 1, pexpire: 2, pttl: 1 });
  });

  test("a grant with words: two more for the words, and the lifetime of these", async () => {
    const words = { words: '["owner","a"]' };
    const commands = await commandsOf([[stage.lock(), acquireOf(asker(1), words)]]);
    expect(commands).toMatchObject({ time: 1, get: 1, set: 2, hset: 1, pexpire: 1 });
    expect(Object.keys(commands)).not.toContain("zadd");
  });

  test("a permit that is free, and its release beside another holder", async () => {
    const keys = stage.lock();
    const [one, other] = [asker(1, { share: "s1/4" }), asker(2, { share: "s1/4" })];
    await stage.grant(keys, one);
    const acquire = { time: 1, get: 1, set: 1, hmget: 1, hset: 1, zadd: 1, zrange: 2, pttl: 1 };
    expect(await commandsOf([[keys, acquireOf(other, { want: 17 })]])).toMatchObject(acquire);
    const release = { time: 1, hmget: 1, hset: 1, hdel: 1, zrem: 1 };
    expect(await commandsOf([[keys, releaseOf(other)]])).toMatchObject(release);
  });

  test("several operations in one call: the time and the counter are read once, and written twice at the most", async () => {
    const keys = Array.from({ length: 8 }, () => stage.lock());
    const acquires = keys.map((own) => [own, acquireOf(asker(1))] as const);
    expect(await commandsOf(acquires)).toEqual({ time: 1, exists: 8, get: 1, set: 8 + 2 });
    const releases = keys.map((own) => [own, releaseOf(asker(1))] as const);
    expect(await commandsOf(releases)).toEqual({ time: 1, getrange: 8, zpopmin: 8, del: 8 });
  });

  test("what grants nothing: the counter is neither read nor written", async () => {
    const keys = await held();
    for (const args of [
      acquireOf(asker(3)),
      acquireOf(asker(4), { wait: "2" }),
      acquireOf(asker(1)),
      ["verify", asker(1).token],
      ["inspect"],
      ["release", asker(9).token, "", "1"],
    ]) {
      const commands = Object.keys(await commandsOf([[keys, args]]));
      expect(commands, args[0]).not.toContain("get");
      expect(commands, args[0]).not.toContain("set");
    }
  });

  test("a release that hands the lock to another request of its client: no message, and no look at the server's run", async () => {
    const keys = await held();
    const next = asker(5, { client: 1 });
    await stage.queue(keys, next);
    const commands = await commandsOf([[keys, releaseOf(asker(1))]]);
    expect(commands).toEqual({ time: 1, getrange: 2, zpopmin: 1, pttl: 1, get: 1, set: 2 });
    expect(await stage.holder(keys)).toBe(next.token);
  });

  test("a release that hands the lock to another client: the run of the server is asked for once in a call", async () => {
    const locks = [await held(), await held(), await held()];
    for (const keys of locks) {
      await stage.queue(keys, asker(2));
    }
    const commands = await commandsOf(locks.map((keys) => [keys, releaseOf(asker(1))] as const));
    expect(commands).toMatchObject({ info: 1, spublish: 3, get: 1, set: 3 + 2 });
    expect(await stage.heard(2)).toHaveLength(3);
  });

  async function held(options: { words?: string } = {}): Promise<LockKeys> {
    const keys = stage.lock();
    await stage.grant(keys, asker(1), options);
    return keys;
  }

  async function commandsOf(operations: readonly Operation[]): Promise<Record<string, number>> {
    await stage.redis.config("RESETSTAT");
    const answers = await stage.batch(operations);
    const info = await stage.redis.info("commandstats");
    expect(answers.filter((answer) => (answer as unknown) !== 1 && answer[0] === "error")).toEqual([]);
    const counts = Array.from(info.matchAll(/^cmdstat_([\w|]+):calls=(\d+)/gm), ([, name = "", calls]) => {
      return [name, Number(calls)] as const;
    });
    expect(counts).toContainEqual(["evalsha", 1]);
    return Object.fromEntries(counts.filter(([name]) => name !== "evalsha" && !name.startsWith("config|")));
  }
});

function releaseOf({ token, terms }: Asker): string[] {
  return ["release", token, terms, "1"];
}
