import { setTimeout as pause } from "node:timers/promises";

import { expect, test } from "vitest";
import { waitUntil, type RedisServer } from "@holdfast/test-kit";

import { ClusterFixture, expectRising, overlapsOf, slotOfLock } from "../../support/cluster-fixture.ts";
import { onRedis } from "../../support/servers.ts";
import { Recording, startWorkers } from "../../support/workers.ts";

const processes = 3;
const tasks = 3;

onRedis("a slot that moves from node to node", () => {
  test("under load: one holder at a time, rising tokens, and no caller hangs", async () => {
    await using fixture = await ClusterFixture.open({ primaries: 3, replicas: 0 });
    const { cluster } = fixture;
    using recording = new Recording();
    const workers = await startWorkers(processes, fixture.port, {}, "cluster");
    for (const worker of workers) {
      fixture.onCleanup(() => worker[Symbol.asyncDispose]());
    }
    const key = "moving";
    const acquire = { ttlMs: 10_000, waitMs: 60_000 };
    for (const worker of workers) {
      worker.order("contend", { key, tasks, record: recording.path, acquire, holdMs: 1 });
    }
    for (let round = 0; round < 4; round++) {
      await Promise.all(workers.map((worker) => worker.request("count", { wanted: 5 }, "counted")));
      const owner = await cluster.ownerOf(slotOfLock(key));
      const next = cluster.servers[(cluster.servers.indexOf(owner) + 1) % 3];
      await cluster.migrate(slotOfLock(key), next as typeof owner, () => pause(50));
    }
    await Promise.all(workers.map((worker) => worker.request("count", { wanted: 5 }, "counted")));
    const done = await Promise.all(workers.map((worker) => worker.request("stop", {}, "done")));
    const entries = recording.read();
    expect(overlapsOf(entries)).toEqual([]);
    expectRising(entries);
    expect(done.map(({ losses }) => losses)).toEqual(workers.map(() => 0));
  });

  test("a waiter subscribes at the new node and is granted there, whatever its client", async () => {
    await using fixture = await ClusterFixture.open({ primaries: 3, replicas: 0 });
    const { cluster } = fixture;
    const holder = fixture.locks();
    const all = await fixture.locksPerLibrary();
    const keyOf = (name: string): string => `{waiting}:${name}`;
    const slot = slotOfLock(keyOf(""));
    const waits = await Promise.all(
      Array.from(all, async ([name, locks]) => {
        const lease = await holder.acquire(keyOf(name));
        const waiter = locks.acquire(keyOf(name), { waitMs: 60_000 });
        await waitUntil(
          async () => (await holder.inspect(keyOf(name))).waiterCount === 1,
          `${name} is queued`,
        );
        return { name, lease, waiter };
      }),
    );
    const source = await cluster.ownerOf(slot);
    const target = cluster.servers[(cluster.servers.indexOf(source) + 1) % 3] as RedisServer;
    expect((await channelsAt(source)).length).toBe(all.size);
    await cluster.migrate(slot, target);
    await waitUntil(
      async () => (await channelsAt(target)).length === all.size,
      "all waiters are subscribed at the new node",
    );
    expect(await channelsAt(source)).toEqual([]);
    for (const { name, lease, waiter } of waits) {
      expect(await lease.release(), name).toBe(true);
      const next = await waiter;
      expect(next.fencingToken, name).toBeGreaterThan(lease.fencingToken);
      expect(await next.release(), name).toBe(true);
    }
  });
});

async function channelsAt(server: RedisServer): Promise<string[]> {
  return (await server.client().call("PUBSUB", "SHARDCHANNELS")) as string[];
}
