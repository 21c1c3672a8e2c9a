import { once } from "node:events";

import { afterAll, beforeAll, expect, test } from "vitest";
import { waitUntil } from "@holdfast/test-kit";

import { detectConnection } from "../../../../../src/drivers/redis/clients/detect.ts";
import { channelOf, counterKey } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { onRedis } from "../../../../support/servers.ts";
import {
  acquireOf,
  requester,
  id,
  ScriptFixture,
  type Requester,
} from "../../../../support/script-fixture.ts";

/** From here on no client is subscribed: their processes have ended. */
const firstDead = 100;

onRedis("the grant to the next waiter", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await fixture.listen(1);
    await fixture.listen(2, "p");
  });
  afterAll(() => fixture.close());

  test("the notification has all of the grant: token, numbers, server time, TTL, run id, key", async () => {
    const keys = fixture.lock();
    const waiter = requester(1, { fencingCount: 4, ttlMs: 2_500 });
    await fixture.redis.zadd(keys[1], 1, waiter.member);
    const runId = (await fixture.queue(keys, requester(9)))[4];
    const { first, last } = await fixture.numbersOf(keys);
    expect(last).toBe(first + 3);
    const [message = "", ...more] = await fixture.received(1);
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

  test("a waiter with plain pub/sub is notified by plain pub/sub", async () => {
    const keys = fixture.lock();
    await fixture.redis.zadd(keys[1], 1, requester(2, { kind: "p" }).member);
    await fixture.run(keys, nudge);
    expect(await fixture.received(2)).toHaveLength(1);
    expect(await fixture.holder(keys)).toBe(requester(2).token);
  });

  test("the lock key is written before the notification is sent", async () => {
    const keys = fixture.lock();
    await fixture.redis.zadd(keys[1], 1, requester(1).member);
    const commands = await watched(() => fixture.run(keys, nudge));
    const order = commands.filter(
      (command) => command === `SET ${keys[0]}` || command.startsWith("SPUBLISH "),
    );
    expect(order).toEqual([`SET ${keys[0]}`, `SPUBLISH ${channelOf(id(1))}`]);
    await fixture.received(1);
  });

  test("a waiter whose process has ended is skipped", async () => {
    const keys = fixture.lock();
    const alive = requester(1, { ticket: 1_000 });
    await queue(keys[1], [requester(firstDead), requester(firstDead + 1), alive]);
    expect(await fixture.run(keys, nudge)).toEqual([0, 0, ""]);
    expect(await fixture.holder(keys)).toBe(alive.token);
    expect(await fixture.redis.exists(keys[1])).toBe(0);
    expect(await fixture.received(1)).toHaveLength(1);
  });

  test("a holder's release skips dead waiters, whether first or not", async () => {
    for (const dead of [[firstDead], [firstDead, firstDead + 1]]) {
      const keys = fixture.lock();
      const alive = requester(1, { ticket: 1_000 });
      await fixture.grant(keys, requester(9));
      await queue(keys[1], [...dead.map((n) => requester(n)), alive]);
      expect(await fixture.run(keys, ["release", requester(9).token, "", "1"])).toEqual([1, 0, ""]);
      expect(await fixture.holder(keys)).toBe(alive.token);
      expect(await fixture.redis.exists(keys[1])).toBe(0);
      expect(await fixture.received(1)).toHaveLength(1);
    }
  });

  test("if all waiters are dead the lock is free, and a try gets it", async () => {
    const keys = fixture.lock();
    await queue(keys[1], [requester(firstDead), requester(firstDead + 1)]);
    expect((await fixture.run(keys, acquireOf(requester(9))))[0]).toBe(1);
    expect(await fixture.holder(keys)).toBe(requester(9).token);
  });

  test("after 16 dead waiters the lock is left free and the caller must repeat, whoever the caller is", async () => {
    const keys = fixture.lock();
    const dead = Array.from({ length: 40 }, (_, n) => requester(firstDead + n));
    const alive = requester(1, { ticket: 1_000 });
    await queue(keys[1], [...dead, alive]);
    expect(await fixture.run(keys, nudge)).toEqual([0, 1, ""]);
    expect(await fixture.redis.exists(keys[0])).toBe(0);
    expect(await fixture.redis.zcard(keys[1])).toBe(41 - 16);
    expect(await fixture.run(keys, acquireOf(requester(9)))).toEqual([3]);
    expect(await fixture.redis.exists(keys[0])).toBe(0);
    expect(await fixture.run(keys, acquireOf(requester(9)))).toMatchObject({ 0: 0, 3: alive.token });
    expect(await fixture.received(1)).toHaveLength(1);
  });

  test("a holder's release that finds 16 dead waiters leaves the lock free", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(9));
    await queue(
      keys[1],
      Array.from({ length: 17 }, (_, n) => requester(firstDead + n)),
    );
    expect(await fixture.run(keys, ["release", requester(9).token, "", "1"])).toEqual([1, 1, ""]);
    expect(await fixture.redis.exists(keys[0])).toBe(0);
    expect(await fixture.run(keys, ["release", requester(9).token, "", "1"])).toEqual([0, 0, ""]);
    expect(await fixture.redis.exists(keys[0], keys[1])).toBe(0);
  });

  test("members past their deadline are dropped without a notification, and members without a deadline wait for ever", async () => {
    const keys = fixture.lock();
    const late = requester(1, { ticket: 1, deadline: Date.now() - 1_000 });
    const patient = requester(1, { ticket: 2, deadline: 0 });
    await queue(keys[1], [late, patient]);
    await fixture.run(keys, nudge);
    expect(await fixture.holder(keys)).toBe(patient.token);
    expect((await fixture.received(1)).map((message) => message.split(" ")[1])).toEqual([patient.token]);
    expect(await fixture.redis.exists(keys[1])).toBe(0);
  });

  test("a member whose deadline is still to come is granted", async () => {
    const keys = fixture.lock();
    await queue(keys[1], [requester(1, { deadline: Date.now() + 60_000 })]);
    await fixture.run(keys, nudge);
    expect(await fixture.holder(keys)).toBe(requester(1).token);
    await fixture.received(1);
  });

  test("a malformed member is dropped", async () => {
    const keys = fixture.lock();
    await fixture.redis.zadd(
      keys[1],
      0,
      "junk",
      1,
      "x:y:1 2 3 4 s",
      2,
      `${requester(1).member} `,
      3,
      requester(1).member,
    );
    await fixture.run(keys, nudge);
    expect(await fixture.holder(keys)).toBe(requester(1).token);
    expect(await fixture.redis.exists(keys[1])).toBe(0);
    await fixture.received(1);
  });

  test("a refused publish loses no waiter, and leaves the lock free until a client may publish", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(9));
    await queue(keys[1], [requester(1), requester(2)]);
    await fixture.redis.call("ACL", "SETUSER", "mute", "on", "nopass", "~*", "+@all", "resetchannels");
    const mute = detectConnection(fixture.server.client({ username: "mute", password: "any" }));
    const [answer] = await fixture.batch([[keys, ["release", requester(9).token, "", "1"]]], {
      connection: mute,
    });
    expect(answer).toEqual(["error", expect.stringContaining("channel")]);
    const waiters = [requester(1).member, requester(2).member];
    expect(await fixture.redis.zrange(keys[1], "0", "-1")).toEqual(waiters);
    expect(await fixture.redis.exists(keys[0])).toBe(0);
    const [again] = await fixture.batch([[keys, acquireOf(requester(9))]], { connection: mute });
    expect(again?.[0]).toBe("error");
    expect(await fixture.redis.zrange(keys[1], "0", "-1")).toEqual(waiters);
    await fixture.run(keys, ["release", requester(9).token, "", "1"]);
    expect(await fixture.holder(keys)).toBe(requester(1).token);
    expect(await fixture.received(1)).toHaveLength(1);
  });

  test("a client without the right to publish does not extend the queue's TTL by retries", async () => {
    const keys = fixture.lock();
    await queue(keys[1], [requester(1)]);
    await fixture.redis.pexpire(keys[1], 20_000);
    await fixture.redis.call("ACL", "SETUSER", "mute", "on", "nopass", "~*", "+@all", "resetchannels");
    const mute = detectConnection(fixture.server.client({ username: "mute", password: "any" }));
    for (const args of [
      acquireOf(requester(9), { wait: "1" }),
      acquireOf(requester(9)),
      ["release", requester(8).token, "", "1"],
    ]) {
      const [answer] = await fixture.batch([[keys, args]], { connection: mute });
      expect(answer, args[0]).toEqual(["error", expect.stringContaining("channel")]);
      expect(await fixture.redis.pttl(keys[1]), args[0]).toBeLessThanOrEqual(20_000);
      expect(await fixture.redis.zscore(keys[1], requester(1).member), args[0]).toBe("1");
    }
    await fixture.redis.pexpire(keys[1], 1);
    await waitUntil(async () => (await fixture.redis.exists(keys[1])) === 0, "the queue has expired");
    await fixture.batch([[keys, acquireOf(requester(9))]], { connection: mute });
    expect(await fixture.holder(keys)).toBe(requester(9).token);
  });

  test("a waiter whose kind of channel the server lacks is skipped", async () => {
    const old = await ScriptFixture.open(["--rename-command", "SPUBLISH", ""]);
    try {
      await old.listen(2, "p");
      const keys = old.lock();
      await old.grant(keys, requester(9));
      await old.redis.zadd(keys[1], 1, requester(1).member, 2, requester(2, { kind: "p" }).member);
      expect((await old.run(keys, ["release", requester(9).token, "", "1"]))[0]).toBe(1);
      expect(await old.holder(keys)).toBe(requester(2).token);
      expect(await old.received(2)).toHaveLength(1);
      expect(await old.redis.exists(keys[1])).toBe(0);
    } finally {
      await old.close();
    }
  });

  test("an error before the grant leaves the next waiter queued, and the lock free", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(9));
    await queue(keys[1], [requester(1), requester(2, { kind: "p" })]);
    await fixture.redis.set(counterKey(), "no number");
    const [kind, message] = await fixture.run(keys, ["release", requester(9).token, "", "1"]);
    expect([kind, message]).toEqual(["error", expect.stringContaining("COUNTER ")]);
    expect(await fixture.redis.zrange(keys[1], "0", "-1", "WITHSCORES")).toEqual([
      requester(1).member,
      "1",
      requester(2, { kind: "p" }).member,
      "2",
    ]);
    expect(await fixture.redis.pttl(keys[1])).toBeGreaterThan(59_000);
    await fixture.redis.del(counterKey());
    await fixture.run(keys, nudge);
    expect(await fixture.holder(keys)).toBe(requester(1).token);
    expect(await fixture.received(1)).toHaveLength(1);
  });

  test("a refused publish returns the server's own error text", async () => {
    const keys = fixture.lock();
    await queue(keys[1], [requester(1)]);
    await fixture.redis.call("ACL", "SETUSER", "mute", "on", "nopass", "~*", "+@all", "resetchannels");
    const mute = detectConnection(fixture.server.client({ username: "mute", password: "any" }));
    const [answer] = await fixture.batch([[keys, acquireOf(requester(9))]], { connection: mute });
    expect(answer?.[1]).toMatch(/^(ERR|NOPERM) /);
  });

  test("a user without the right to TYPE gets the replies of the operations beside a failed one", async () => {
    const [broken, keys] = [fixture.lock(), fixture.lock()];
    await fixture.redis.rpush(broken[0], "a list");
    await fixture.redis.call("ACL", "SETUSER", "typeless", "on", "nopass", "~*", "&*", "+@all", "-type");
    const typeless = detectConnection(fixture.server.client({ username: "typeless", password: "any" }));
    const operations = [
      [keys, acquireOf(requester(9))],
      [broken, ["extend", requester(9).token, "30000", "", ""]],
    ] as const;
    const [granted, failed] = await fixture.batch(operations, { connection: typeless });
    expect(granted?.[0]).toBe(1);
    expect(failed).toEqual(["error", expect.stringContaining("WRONGTYPE")]);
  });

  /** A release with an unknown token, which grants the lock to the next waiter. */
  const nudge = ["release", requester(9).token, "", "1"];

  async function queue(key: string, waiters: readonly Requester[]): Promise<void> {
    for (const { token, member } of waiters) {
      await fixture.redis.zadd(key, Number(token.split(":")[2]), member);
    }
  }

  /** The commands that ran on the server during the call, each with its first key. */
  async function watched(act: () => Promise<unknown>): Promise<string[]> {
    const monitor = await fixture.server.client().monitor();
    const seen: string[] = [];
    monitor.on("monitor", (_time: string, [name = "", key]: string[]) => {
      seen.push(`${name.toUpperCase()} ${String(key)}`);
    });
    await act();
    const end = once(monitor, "monitor");
    await fixture.redis.ping();
    await end;
    while (!seen.some((command) => command.startsWith("PING "))) {
      await once(monitor, "monitor");
    }
    monitor.disconnect();
    return seen;
  }
});
