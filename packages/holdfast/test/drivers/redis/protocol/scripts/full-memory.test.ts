import { setTimeout as pause } from "node:timers/promises";

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";

import {
  channelOf,
  clientKey,
  counterKey,
  KeySpace,
} from "../../../../../src/drivers/redis/protocol/keys.ts";
import {
  executeSingleScript,
  handshakeScript,
} from "../../../../../src/drivers/redis/protocol/scripts.generated.ts";
import { onNodes, requester as askerOfNode } from "../../../../support/quorum-script-fixture.ts";
import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, id, requester, ScriptFixture } from "../../../../support/script-fixture.ts";

const refused = ["error", expect.stringMatching(/OOM command not allowed/)];

/** The extensions on such a server are in `extend.test.ts`. */
onRedis("A server with full memory", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await fixture.listen(1);
    await fixture.listen(2);
  });
  afterEach(() => setMemoryFull(false));
  afterAll(() => fixture.close());

  async function setMemoryFull(isFull: boolean): Promise<void> {
    await fixture.redis.config("SET", "maxmemory", isFull ? "1" : "0");
  }

  test("registers a client and publishes its text", async () => {
    await setMemoryFull(true);
    const args = [channelOf(id(1)), "s", "ping", "60000", "owner", "a"];
    const [, receivers] = (await fixture.connection.run(
      handshakeScript,
      [clientKey(id(1))],
      args,
    )) as unknown[];
    expect([receivers, await fixture.received(1)]).toEqual([1, ["ping"]]);
    expect(await fixture.redis.hgetall(clientKey(id(1)))).toEqual({ owner: "a" });
  });

  test("breaks a grant and writes its record", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(1));
    const audit = new KeySpace("", "lock:").auditKey();
    await setMemoryFull(true);
    const operation = ["recordedBreak", String(first), "s", "stuck", '{"by":"ada"}'];
    const all = [counterKey(), ...keys, audit];
    const [, answer] = (await fixture.connection.run(executeSingleScript, all, [
      "100000",
      ...operation,
    ])) as unknown[];
    expect(answer).toEqual([1, 0, expect.any(String)]);
    expect(await fixture.redis.zcard(audit)).toBe(1);
    expect(await fixture.holder(keys)).toBeNull();
  });

  describe.each([
    ["a mutex", undefined],
    ["a writer", "w"],
    ["a permit", "s1/1"],
  ] as const)("for %s", (_, lockMode) => {
    const options = lockMode === undefined ? {} : { lockMode };
    const [holder, waiter, late] = [1, 2, 3].map((n) => requester(n, options)) as [
      ReturnType<typeof requester>,
      ReturnType<typeof requester>,
      ReturnType<typeof requester>,
    ];

    test("keeps a waiter that polls, and queues no other", async () => {
      const keys = fixture.lock();
      await fixture.grant(keys, holder);
      expect((await fixture.queue(keys, waiter))[0]).toBe(0);
      await fixture.redis.pexpire(keys[1], 5_000);
      await setMemoryFull(true);
      expect(await fixture.queue(keys, waiter)).toMatchObject({ 0: 0, 2: 0 });
      expect(await fixture.redis.pttl(keys[1])).toBeGreaterThan(50_000);
      expect(await fixture.queue(keys, late)).toEqual(refused);
      expect(await fixture.redis.zrange(keys[1], "0", "-1")).toEqual([waiter.member]);
    });

    test("grants a released lock to the waiter, by a poll too", async () => {
      const [released, vanished] = [fixture.lock(), fixture.lock()];
      for (const keys of [released, vanished]) {
        await fixture.grant(keys, holder);
        await fixture.queue(keys, waiter);
      }
      await fixture.redis.del(vanished[0]);
      await setMemoryFull(true);
      expect(await fixture.run(released, ["release", holder.token, "", "1"])).toMatchObject({ 0: 1 });
      expect(await fixture.received(2)).toEqual([expect.stringContaining(`grant ${waiter.token} `)]);
      expect(await fixture.queue(vanished, waiter)).toMatchObject({ 0: 1, 3: waiter.token });
    });
  });

  test("makes a reader of a writer", async () => {
    const keys = fixture.lock();
    const writer = requester(1, { lockMode: "w" });
    const { first } = await fixture.grant(keys, writer);
    await setMemoryFull(true);
    expect(await fixture.run(keys, ["downgrade", writer.token, ""])).toEqual([1, 0]);
    await setMemoryFull(false);
    expect(await fixture.run(keys, acquireOf(requester(2, { lockMode: "r" })))).toMatchObject({ 0: 1 });
    expect(await fixture.run(keys, ["verify", writer.token])).toEqual([1, expect.any(Number), first]);
  });
});

onNodes("A node with full memory", (fixture) => {
  beforeEach(() => fixture.listen(2));
  afterEach(() => fixture.data.setMemoryFull(false));

  describe.each([
    ["a mutex", undefined],
    ["a writer", "w"],
  ] as const)("for %s", (_, lockMode) => {
    const options = lockMode === undefined ? {} : { lockMode };
    const [us, waiter] = [askerOfNode(1, options), askerOfNode(2, options)];

    test("restores a vote whose key has vanished, and ends it", async () => {
      const keys = fixture.lock();
      const { first } = await fixture.grant(keys, us);
      await fixture.data.setMemoryFull(true);
      await fixture.data.del(keys[0]);
      expect(await fixture.run(keys, ["verify", us.token])).toEqual([1, expect.any(Number), first]);
      await fixture.data.del(keys[0]);
      expect(await fixture.run(keys, ["release", us.token, us.entryTail])).toMatchObject({ 0: 1 });
    });

    test("serves the next waiter after a holder that expired", async () => {
      const keys = fixture.lock();
      await fixture.grant(keys, us, { ttlMs: 100 });
      await fixture.queue(keys, waiter);
      await fixture.data.setMemoryFull(true);
      await pause(150); // until the vote has ended by the node's clock
      expect(await fixture.run(keys, ["inspect"])).toMatchObject({ 5: 1 });
      const [status, , , , delayMs] = await fixture.queue(keys, waiter);
      expect(status).toBe(1);
      expect(delayMs).toBeGreaterThan(0);
    });

    test("raises the number of a present vote", async () => {
      const keys = fixture.lock();
      const { first } = await fixture.grant(keys, us);
      await fixture.data.setMemoryFull(true);
      const number = first + 5;
      expect(await fixture.run(keys, ["raiseFence", us.token, String(number), "1"])).toEqual([
        1,
        number,
        number,
      ]);
    });
  });

  test("makes a reader of a writer", async () => {
    const keys = fixture.lock();
    const writer = askerOfNode(1, { lockMode: "w" });
    await fixture.grant(keys, writer);
    await fixture.data.setMemoryFull(true);
    expect(await fixture.run(keys, ["downgrade", writer.token, ""])).toMatchObject({ 0: 1 });
  });

  test("refuses a new vote", async () => {
    await fixture.data.setMemoryFull(true);
    expect(await fixture.run(fixture.lock(), acquireOf(askerOfNode(1)))).toEqual(refused);
  });
});
