import { readFile } from "node:fs/promises";

import { createLocks, type Locks, type LocksOptions, type ProcessState } from "holdfast";
import { memory } from "holdfast/memory";
import { redis, redlock } from "holdfast/redis";
import { startRedis, type RedisServer } from "@holdfast/test-kit";
import { afterAll, beforeAll, expect, test, vi } from "vitest";

import { version } from "../../../../src/version.ts";
import { later, unique } from "../../../support/waiter-fixture.ts";
import { onRedis } from "../../../support/servers.ts";

const clientSet = "holdfast:client:of:lock:";
/** A process registers a second after its first acquire. */
const registered = { interval: 50 };

onRedis("The directory of processes", () => {
  let server: RedisServer;
  const opened: Locks[] = [];

  beforeAll(async () => {
    server = await startRedis();
  });

  afterAll(async () => {
    await Promise.all(opened.map((locks) => locks.close()));
    await server.stop();
  });

  function open(options: LocksOptions = {}, on: RedisServer = server): Locks {
    const locks = createLocks(redis(on.client()), options);
    opened.push(locks);
    return locks;
  }

  /** The process with this owner, as soon as another process finds it. */
  async function found(by: Locks, owner: string, key?: string): Promise<ProcessState> {
    return vi.waitFor(async () => {
      const { processes } = await by.admin.processes({ key, timeoutMs: 1_000 });
      const process = processes.find((one) => one.owner === owner);
      expect(process).toBeDefined();
      return process as ProcessState;
    }, registered);
  }

  test("shows the leases and the callers in memory of another process, without a token", async () => {
    const [key, other] = [unique(), unique()];
    const holder = open({ owner: "holder@pod:1" });
    const lease = await holder.acquire(key, { ttlMs: 60_000, reason: "charge", labels: { shard: "3" } });
    const waiting = [1, 2, 3].map(() => later(holder.acquire(key, { waitMs: 60_000 })));
    await holder.readWrite(other).read.acquire();

    const asker = open({ owner: "asker" });
    const process = await found(asker, "holder@pod:1", key);
    expect(process).toMatchObject({ answered: true, seenMs: 0, version, holdCount: 1, waitCount: 1 });
    expect(process.lagMs).toBeGreaterThanOrEqual(0);
    const [hold] = process.holds;
    expect(hold).toMatchObject({
      key,
      kind: "mutex",
      reason: "charge",
      labels: { shard: "3" },
      localWaiters: 3,
    });
    expect(hold?.fencingToken).toBe(lease.fencingToken);
    expect(hold?.renewedMs).toBeLessThanOrEqual(hold?.heldMs ?? 0);
    expect(hold?.marginMs).toBeGreaterThan(30_000);
    expect(process.waits).toMatchObject([{ key, kind: "mutex", count: 3 }]);
    expect(JSON.stringify(process)).not.toContain(lease.transfer().token);

    const all = await found(asker, "holder@pod:1");
    expect(all.holds).toMatchObject([{ key: other, kind: "read-write", mode: "read" }]); // the other lease was transferred
    await holder.close();
    await Promise.allSettled(waiting);
    expect(await asker.admin.processes()).toMatchObject({ scope: "engine", problem: null });
    expect((await asker.admin.processes()).processes.map(({ owner }) => owner)).not.toContain("holder@pod:1");
  });

  test("shows a process that does not answer, and waits no longer than its limit", async () => {
    const frozen = "f".repeat(32);
    const probe = server.client();
    const asker = open();
    await probe.hset(`holdfast:client:${frozen}`, { owner: "frozen@pod:2", host: "pod", pid: "2" });
    await probe.zadd(clientSet, String(Date.now() + 120_000), frozen);
    const subscriber = server.client();
    await subscriber.ssubscribe(`holdfast:grants:${frozen}`);
    try {
      const started = performance.now();
      const { processes, complete } = await asker.admin.processes({ timeoutMs: 200 });
      expect(performance.now() - started).toBeGreaterThanOrEqual(190);
      expect(complete).toBe(false);
      const silent = processes.find(({ owner }) => owner === "frozen@pod:2");
      expect(silent).toMatchObject({ host: "pod", pid: 2, answered: false, holds: [] });
      expect(silent?.seenMs).toBeGreaterThan(50_000);
      const signal = AbortSignal.timeout(50);
      const aborted = asker.admin.processes({ timeoutMs: 60_000, signal });
      await expect(aborted).rejects.toMatchObject({ name: "TimeoutError" });
    } finally {
      await subscriber.sunsubscribe();
      await probe.zrem(clientSet, frozen);
    }
  });

  test("cuts the answer of a process with many leases, and counts them", async () => {
    const holder = open({ owner: "many@pod:3" });
    const prefix = unique();
    await Promise.all(Array.from({ length: 2_000 }, (_, i) => holder.acquire(`${prefix}-${i}`)));
    const { holds, holdCount } = await found(open(), "many@pod:3");
    expect(holdCount).toBe(2_000);
    expect(holds.length).toBeGreaterThan(10);
    expect(holds.length).toBeLessThan(400);
    const own = await holder.admin.processes();
    expect(own.processes.find(({ owner }) => owner === "many@pod:3")?.holds).toHaveLength(2_000);
    await holder.close();
  });

  test("ignores malformed questions and answers of other programs", async () => {
    const holder = open({ owner: "hostile@pod:4" });
    const lease = await holder.acquire(unique());
    const asker = open();
    await found(asker, "hostile@pod:4");
    const probe = server.client();
    const ids = await probe.zrange(clientSet, "0", "-1");
    const [nonce, asking] = ["a".repeat(32), "b".repeat(32)];
    const texts = [
      "processes",
      `processes ${nonce} ${asking} 99999999 k`,
      `processes ${nonce} another 2000 `,
      `process ${nonce} ${asking} []`,
      `process ${nonce} ${asking} [{"owner":1}]`,
      ...Array.from({ length: 100 }, (_, i) => `processes ${String(i).padStart(32, "0")} ${asking} 2000 `),
    ];
    for (const id of ids) {
      for (const text of texts) {
        await probe.spublish(`holdfast:grants:${id}`, text);
      }
    }
    // An answer to a true question, with a body that no process writes, and one of a client that was not asked.
    const lie = server.client();
    await lie.ssubscribe(`holdfast:grants:${ids[0] ?? ""}`);
    lie.on("smessageBuffer", (_channel: Buffer, message: Buffer) => {
      const [, asked = "", to = ""] = /^processes (\w+) (\w+)/.exec(message.toString()) ?? [];
      for (const body of ['[{"owner":"x","holdCount":-1}]', "{", "null", '[{"owner":"forged"}]']) {
        void probe.spublish(`holdfast:grants:${to}`, `process ${asked} ${"c".repeat(32)} ${body}`);
      }
    });
    await vi.waitFor(async () => {
      const { processes } = await asker.admin.processes({ timeoutMs: 1_000 });
      expect(processes.find(({ owner }) => owner === "hostile@pod:4")?.answered).toBe(true);
      expect(processes.map(({ owner }) => owner)).not.toContain("forged");
    }, registered);
    expect(await lease.release()).toBe(true);
  });

  test("asks by every node of a quorum, also while one is down", async () => {
    const nodes = await Promise.all([startRedis(), startRedis(), startRedis()]);
    const driver = (): Locks => {
      const locks = createLocks(
        redlock(
          nodes.map((node) => node.client()),
          { restartGuard: "off", nodeTimeoutMs: 5_000 },
        ),
        { owner: "quorum@pod:5" },
      );
      opened.push(locks);
      return locks;
    };
    try {
      const holder = driver();
      const key = unique();
      await holder.acquire(key);
      const asker = driver();
      expect((await found(asker, "quorum@pod:5", key)).holds).toMatchObject([{ key }]);
      await nodes[0]?.stop();
      expect((await found(asker, "quorum@pod:5", key)).holds).toMatchObject([{ key }]);
      await Promise.all([holder.close(), asker.close()]);
    } finally {
      await Promise.all(nodes.map((node) => node.stop()));
    }
  });

  test("says why, where the user of the server may not write the set of clients", async () => {
    const probe = server.client();
    const line =
      "on >secret ~lock:* ~holdfast:queue:* ~holdfast:fence* ~holdfast:info:* resetchannels &holdfast:grants:* +@all";
    await probe.call(
      "ACL",
      "SETUSER",
      "narrow",
      ...line.split(" "),
      "%RW~holdfast:client:????????????????????????????????",
    );
    const client = server.client().duplicate({ username: "narrow", password: "secret" });
    const locks = createLocks(redis(client));
    try {
      const lease = await locks.acquire(unique());
      expect(await locks.admin.processes()).toMatchObject({
        complete: false,
        problem: expect.stringContaining("NOPERM"),
      });
      expect(await lease.release()).toBe(true);
    } finally {
      await locks.close();
      client.disconnect();
    }
  });

  test("reports this process only on an engine without notifications between processes", async () => {
    const driver = memory();
    const [one, two] = [createLocks(driver, { owner: "one" }), createLocks(driver, { owner: "two" })];
    await one.acquire("a");
    await two.acquire("b");
    const list = await two.admin.processes();
    expect(list).toMatchObject({ scope: "process", complete: true });
    expect(list.processes.map(({ owner, holds }) => [owner, holds.map(({ key }) => key)])).toEqual([
      ["one", ["a"]],
      ["two", ["b"]],
    ]);
    await Promise.all([one.close(), two.close()]);
  });

  test("names the version of the package", async () => {
    const text = await readFile(new URL("../../../../package.json", import.meta.url), "utf8");
    expect((JSON.parse(text) as { version: string }).version).toBe(version);
  });
});
