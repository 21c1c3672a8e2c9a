import { setTimeout as pause } from "node:timers/promises";

import { expect, test } from "vitest";
import { until } from "@holdfast/lab";

import { ClusterStage, expectRising, overlapsOf, slotOfLock } from "../support/cluster-stage.ts";
import { onRedis } from "../support/servers.ts";
import { Recording, startWorkers } from "../support/workers.ts";

const processes = 3;
const tasks = 3;

onRedis("a slot that moves from node to node", () => {
  test("under load: one holder at a time, rising tokens, and nobody hangs", async () => {
    await using stage = await ClusterStage.open({ primaries: 3, replicas: 0 });
    const { cluster } = stage;
    using recording = new Recording();
    const workers = await startWorkers(processes, stage.port, {}, "cluster");
    for (const worker of workers) {
      stage.atEnd(() => worker[Symbol.asyncDispose]());
    }
    const key = "moving";
    const acquire = { ttlMs: 10_000, waitMs: 60_000 };
    for (const worker of workers) {
      worker.order("contend", { key, tasks, record: recording.path, acquire, holdMs: 1 });
    }
    for (let round = 0; round < 4; round++) {
      await Promise.all(workers.map((worker) => worker.ask("count", { wanted: 5 }, "counted")));
      const owner = await cluster.ownerOf(slotOfLock(key));
      const next = cluster.servers[(cluster.servers.indexOf(owner) + 1) % 3];
      await cluster.migrate(slotOfLock(key), next as typeof owner, () => pause(50));
    }
    await Promise.all(workers.map((worker) => worker.ask("count", { wanted: 5 }, "counted")));
    const done = await Promise.all(workers.map((worker) => worker.ask("stop", {}, "done")));
    const entries = recording.read();
    expect(overlapsOf(entries)).toEqual([]);
    expectRising(entries);
    expect(done.map(({ losses }) => losses)).toEqual(workers.map(() => 0));
  }, 120_000);

  test("who waits is subscribed at the new node by itself, and is granted there", async () => {
    await using stage = await ClusterStage.open({ primaries: 3, replicas: 0 });
    const { cluster } = stage;
    const [here, there] = [stage.locks(), stage.locks()];
    const key = "waiting";
    const slot = slotOfLock(key);
    const lease = await here.acquire(key);
    const waiter = there.acquire(key, { waitMs: 60_000 });
    const source = await cluster.ownerOf(slot);
    const target = cluster.servers[(cluster.servers.indexOf(source) + 1) % 3] as typeof source;
    const channelsAt = async (server: typeof source): Promise<string[]> =>
      (await server.client().call("PUBSUB", "SHARDCHANNELS")) as string[];
    await until(async () => (await channelsAt(source)).length === 1, "the waiter is subscribed");
    await until(async () => (await here.inspect(key)).waiterCount === 1, "it has its place");
    await cluster.migrate(slot, target);
    await until(async () => (await channelsAt(target)).length === 1, "it is subscribed at the new node");
    expect(await channelsAt(source)).toEqual([]);
    expect(await lease.release()).toBe(true);
    const next = await waiter;
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    expect(await next.release()).toBe(true);
  }, 60_000);
});
