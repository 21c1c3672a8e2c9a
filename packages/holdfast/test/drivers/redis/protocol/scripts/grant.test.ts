import { once } from "node:events";

import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "@holdfast/test-kit";

import { detectConnection } from "../../../../../src/drivers/redis/clients/detect.ts";
import { channelOf, counterKey } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, asker, id, ScriptStage, type Asker } from "../../../../support/script-fixture.ts";

/** Nobody listens to the clients from here on: their processes are gone. */
const firstDead = 100;

onRedis("the grant to the next", () => {
  let stage: ScriptStage;
  beforeAll(async () => {
    stage = await ScriptStage.open();
    await stage.listen(1);
    await stage.listen(2, "p");
  });
  afterAll(() => stage.close());

  test("the message says all of the grant: token, numbers, server time, TTL, run id, key", async () => {
    const keys = stage.lock();
    const waiter = asker(1, { want: 4, ttlMs: 2_500 });
    await stage.redis.zadd(keys[1], 1, waiter.member);
    const runId = (await stage.queue(keys, asker(9)))[4];
    const { first, last } = await stage.numbersOf(keys);
    expect(last).toBe(first + 3);
    const [message = "", ...more] = await stage.heard(1);
    const [kind, token, one, other, micros, ttl, run, ...key] = message.split(" ");
    expect([kind, token, one, other, ttl, run]).toEqual([
      "grant",
      waiter.token,
      String(first),
      String(last),
      "2500",
      runId,
    ]);
    expect(Number(micros)).toBe(first);
    expect(key.join(" ")).toBe(keys[0]);
    expect(more).toEqual([]);
  });

  test("a waiter with plain pub/sub is told by plain pub/sub", async () => {
    const keys = stage.lock();
    await stage.redis.zadd(keys[1], 1, asker(2, { kind: "p" }).member);
    await stage.ask(keys, nudge);
    expect(await stage.heard(2)).toHaveLength(1);
    expect(await stage.holder(keys)).toBe(asker(2).token);
  });

  test("K is written before the message is sent", async () => {
    const keys = stage.lock();
    await stage.redis.zadd(keys[1], 1, asker(1).member);
    const commands = await watched(() => stage.ask(keys, nudge));
    const order = commands.filter(
      (command) => command === `SET ${keys[0]}` || command.startsWith("SPUBLISH "),
    );
    expect(order).toEqual([`SET ${keys[0]}`, `SPUBLISH ${channelOf(id(1))}`]);
    await stage.heard(1);
  });

  test("a waiter whose process is gone is passed over", async () => {
    const keys = stage.lock();
    const alive = asker(1, { ticket: 1_000 });
    await queue(keys[1], [asker(firstDead), asker(firstDead + 1), alive]);
    expect(await stage.ask(keys, nudge)).toEqual([0, 0, ""]);
    expect(await stage.holder(keys)).toBe(alive.token);
    expect(await stage.redis.exists(keys[1])).toBe(0);
    expect(await stage.heard(1)).toHaveLength(1);
  });

  test("a holder's release passes over who is gone, whether it was the first or not", async () => {
    for (const dead of [[firstDead], [firstDead, firstDead + 1]]) {
      const keys = stage.lock();
      const alive = asker(1, { ticket: 1_000 });
      await stage.grant(keys, asker(9));
      await queue(keys[1], [...dead.map((n) => asker(n)), alive]);
      expect(await stage.ask(keys, ["release", asker(9).token, "", "1"])).toEqual([1, 0, ""]);
      expect(await stage.holder(keys)).toBe(alive.token);
      expect(await stage.redis.exists(keys[1])).toBe(0);
      expect(await stage.heard(1)).toHaveLength(1);
    }
  });

  test("where all are gone the lock is free, and a try gets it", async () => {
    const keys = stage.lock();
    await queue(keys[1], [asker(firstDead), asker(firstDead + 1)]);
    expect((await stage.ask(keys, acquireOf(asker(9))))[0]).toBe(1);
    expect(await stage.holder(keys)).toBe(asker(9).token);
  });

  test("after 16 dead waiters the lock is left free and the caller told to repeat, whoever it is", async () => {
    const keys = stage.lock();
    const dead = Array.from({ length: 40 }, (_, n) => asker(firstDead + n));
    const alive = asker(1, { ticket: 1_000 });
    await queue(keys[1], [...dead, alive]);
    expect(await stage.ask(keys, nudge)).toEqual([0, 1, ""]);
    expect(await stage.redis.exists(keys[0])).toBe(0);
    expect(await stage.redis.zcard(keys[1])).toBe(41 - 16);
    expect(await stage.ask(keys, acquireOf(asker(9)))).toEqual([3]);
    expect(await stage.redis.exists(keys[0])).toBe(0);
    expect(await stage.ask(keys, acquireOf(asker(9)))).toMatchObject({ 0: 0, 3: alive.token });
    expect(await stage.heard(1)).toHaveLength(1);
  });

  test("a holder's release that meets 16 dead waiters leaves the lock free", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(9));
    await queue(
      keys[1],
      Array.from({ length: 17 }, (_, n) => asker(firstDead + n)),
    );
    expect(await stage.ask(keys, ["release", asker(9).token, "", "1"])).toEqual([1, 1, ""]);
    expect(await stage.redis.exists(keys[0])).toBe(0);
    expect(await stage.ask(keys, ["release", asker(9).token, "", "1"])).toEqual([0, 0, ""]);
    expect(await stage.redis.exists(keys[0], keys[1])).toBe(0);
  });

  test("members past their deadline are dropped without being asked, those without one wait for ever", async () => {
    const keys = stage.lock();
    const late = asker(1, { ticket: 1, deadline: Date.now() - 1_000 });
    const patient = asker(1, { ticket: 2, deadline: 0 });
    await queue(keys[1], [late, patient]);
    await stage.ask(keys, nudge);
    expect(await stage.holder(keys)).toBe(patient.token);
    expect((await stage.heard(1)).map((message) => message.split(" ")[1])).toEqual([patient.token]);
    expect(await stage.redis.exists(keys[1])).toBe(0);
  });

  test("a member whose deadline is still to come is granted", async () => {
    const keys = stage.lock();
    await queue(keys[1], [asker(1, { deadline: Date.now() + 60_000 })]);
    await stage.ask(keys, nudge);
    expect(await stage.holder(keys)).toBe(asker(1).token);
    await stage.heard(1);
  });

  test("what is no member of ours is dropped", async () => {
    const keys = stage.lock();
    await stage.redis.zadd(
      keys[1],
      0,
      "junk",
      1,
      "x:y:1 2 3 4 s",
      2,
      `${asker(1).member} `,
      3,
      asker(1).member,
    );
    await stage.ask(keys, nudge);
    expect(await stage.holder(keys)).toBe(asker(1).token);
    expect(await stage.redis.exists(keys[1])).toBe(0);
    await stage.heard(1);
  });

  test("a publish that is refused eats no waiter, and leaves the lock free until somebody may publish", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(9));
    await queue(keys[1], [asker(1), asker(2)]);
    await stage.redis.call("ACL", "SETUSER", "mute", "on", "nopass", "~*", "+@all", "resetchannels");
    const mute = detectConnection(stage.server.client({ username: "mute", password: "any" }));
    const [answer] = await stage.batch([[keys, ["release", asker(9).token, "", "1"]]], { connection: mute });
    expect(answer).toEqual(["error", expect.stringContaining("channel")]);
    const waiters = [asker(1).member, asker(2).member];
    expect(await stage.redis.zrange(keys[1], "0", "-1")).toEqual(waiters);
    expect(await stage.redis.exists(keys[0])).toBe(0);
    const [again] = await stage.batch([[keys, acquireOf(asker(9))]], { connection: mute });
    expect(again?.[0]).toBe("error");
    expect(await stage.redis.zrange(keys[1], "0", "-1")).toEqual(waiters);
    await stage.ask(keys, ["release", asker(9).token, "", "1"]);
    expect(await stage.holder(keys)).toBe(asker(1).token);
    expect(await stage.heard(1)).toHaveLength(1);
  });

  test("a client that may not publish does not make the queue last longer by its retries", async () => {
    const keys = stage.lock();
    await queue(keys[1], [asker(1)]);
    await stage.redis.pexpire(keys[1], 20_000);
    await stage.redis.call("ACL", "SETUSER", "mute", "on", "nopass", "~*", "+@all", "resetchannels");
    const mute = detectConnection(stage.server.client({ username: "mute", password: "any" }));
    for (const args of [
      acquireOf(asker(9), { wait: "1" }),
      acquireOf(asker(9)),
      ["release", asker(8).token, "", "1"],
    ]) {
      const [answer] = await stage.batch([[keys, args]], { connection: mute });
      expect(answer, args[0]).toEqual(["error", expect.stringContaining("channel")]);
      expect(await stage.redis.pttl(keys[1]), args[0]).toBeLessThanOrEqual(20_000);
      expect(await stage.redis.zscore(keys[1], asker(1).member), args[0]).toBe("1");
    }
    await stage.redis.pexpire(keys[1], 1);
    await until(async () => (await stage.redis.exists(keys[1])) === 0, "the queue has expired");
    await stage.batch([[keys, acquireOf(asker(9))]], { connection: mute });
    expect(await stage.holder(keys)).toBe(asker(9).token);
  });

  test("a waiter whose kind of channel the server does not have is passed over", async () => {
    const old = await ScriptStage.open(["--rename-command", "SPUBLISH", ""]);
    try {
      await old.listen(2, "p");
      const keys = old.lock();
      await old.grant(keys, asker(9));
      await old.redis.zadd(keys[1], 1, asker(1).member, 2, asker(2, { kind: "p" }).member);
      expect((await old.ask(keys, ["release", asker(9).token, "", "1"]))[0]).toBe(1);
      expect(await old.holder(keys)).toBe(asker(2).token);
      expect(await old.heard(2)).toHaveLength(1);
      expect(await old.redis.exists(keys[1])).toBe(0);
    } finally {
      await old.close();
    }
  });

  test("an error on the way to the next leaves it in its place, and the lock free", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(9));
    await queue(keys[1], [asker(1), asker(2, { kind: "p" })]);
    await stage.redis.set(counterKey(), "no number");
    const [kind, message] = await stage.ask(keys, ["release", asker(9).token, "", "1"]);
    expect([kind, message]).toEqual(["error", expect.stringContaining("COUNTER ")]);
    expect(await stage.redis.zrange(keys[1], "0", "-1", "WITHSCORES")).toEqual([
      asker(1).member,
      "1",
      asker(2, { kind: "p" }).member,
      "2",
    ]);
    expect(await stage.redis.pttl(keys[1])).toBeGreaterThan(59_000);
    await stage.redis.del(counterKey());
    await stage.ask(keys, nudge);
    expect(await stage.holder(keys)).toBe(asker(1).token);
    expect(await stage.heard(1)).toHaveLength(1);
  });

  test("a publish that is refused answers the server's own words", async () => {
    const keys = stage.lock();
    await queue(keys[1], [asker(1)]);
    await stage.redis.call("ACL", "SETUSER", "mute", "on", "nopass", "~*", "+@all", "resetchannels");
    const mute = detectConnection(stage.server.client({ username: "mute", password: "any" }));
    const [answer] = await stage.batch([[keys, acquireOf(asker(9))]], { connection: mute });
    expect(answer?.[1]).toMatch(/^(ERR|NOPERM) /);
  });

  test("who may not ask for a key's type gets the answers of the operations beside one that failed", async () => {
    const [broken, keys] = [stage.lock(), stage.lock()];
    await stage.redis.rpush(broken[0], "a list");
    await stage.redis.call("ACL", "SETUSER", "typeless", "on", "nopass", "~*", "&*", "+@all", "-type");
    const typeless = detectConnection(stage.server.client({ username: "typeless", password: "any" }));
    const asked = [
      [keys, acquireOf(asker(9))],
      [broken, ["extend", asker(9).token, "30000", "", ""]],
    ] as const;
    const [granted, failed] = await stage.batch(asked, { connection: typeless });
    expect(granted?.[0]).toBe(1);
    expect(failed).toEqual(["error", expect.stringContaining("WRONGTYPE")]);
  });

  /** A release of nothing: it hands the lock to the next. */
  const nudge = ["release", asker(9).token, "", "1"];

  async function queue(key: string, waiters: readonly Asker[]): Promise<void> {
    for (const { token, member } of waiters) {
      await stage.redis.zadd(key, Number(token.split(":")[2]), member);
    }
  }

  /** The commands that ran on the server meanwhile, each with its first key. */
  async function watched(act: () => Promise<unknown>): Promise<string[]> {
    const monitor = await stage.server.client().monitor();
    const seen: string[] = [];
    monitor.on("monitor", (_time: string, [name = "", key]: string[]) => {
      seen.push(`${name.toUpperCase()} ${String(key)}`);
    });
    await act();
    const end = once(monitor, "monitor");
    await stage.redis.ping();
    await end;
    while (!seen.some((command) => command.startsWith("PING "))) {
      await once(monitor, "monitor");
    }
    monitor.disconnect();
    return seen;
  }
});
