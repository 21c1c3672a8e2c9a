import { expect, test } from "vitest";
import { abortOf, waitUntil } from "@holdfast/test-kit";

import {
  ClusterFixture,
  expectRising,
  keysOnDifferentPrimaries,
  overlapsOf,
  slotOfLock,
} from "../../support/cluster-fixture.ts";
import { reasonOf } from "../../support/fault-fixture.ts";
import { onRedis } from "../../support/servers.ts";
import { Recording, startWorkers } from "../../support/workers.ts";

const processes = 3;
const tasks = 3;

onRedis("a primary that fails over", () => {
  test("under load: rising tokens, and no caller hangs", async () => {
    await using fixture = await ClusterFixture.open({ primaries: 3, replicas: 3 });
    const { cluster } = fixture;
    using recording = new Recording();
    const workers = await startWorkers(processes, cluster.ports[5] as number, {}, "cluster");
    for (const worker of workers) {
      fixture.onCleanup(() => worker[Symbol.asyncDispose]());
    }
    const key = "failing-over";
    const acquire = { ttlMs: 2_000, waitMs: 60_000 };
    for (const worker of workers) {
      worker.order("contend", { key, tasks, record: recording.path, acquire, holdMs: 1 });
    }
    await Promise.all(workers.map((worker) => worker.request("count", { wanted: 20 }, "counted")));
    const primary = await cluster.ownerOf(slotOfLock(key));
    primary.kill("SIGKILL");
    const killedAt = recording.end;
    await cluster.healthy();
    await Promise.all(workers.map((worker) => worker.request("count", { wanted: 20 }, "counted")));
    await Promise.all(workers.map((worker) => worker.request("stop", {}, "done")));
    const entries = recording.read();
    expectRising(entries);
    expect(overlapsOf(recording.read(0, killedAt))).toEqual([]);
    expect(overlapsOf(entries).length).toBeLessThanOrEqual(1); // the one grant that the replica may lack
    expect(await cluster.ownerOf(slotOfLock(key))).not.toBe(primary);
  });

  test("a lease that the replica lacks is reported lost, and one that it has is renewed there", async () => {
    await using fixture = await ClusterFixture.open({ primaries: 3, replicas: 3 });
    const { cluster } = fixture;
    const [primary, replica] = [cluster.servers[0], cluster.servers[3]] as const;
    const locks = fixture.locks();
    const [keys = []] = keysOnDifferentPrimaries(3, "survival", 2);
    const [known = "", unknown = ""] = keys;
    const kept = await locks.acquire(known, { ttlMs: 30_000 });
    expect(await primary?.client().call("WAIT", 1, 10_000)).toBe(1);
    // From here on the replica receives nothing.
    replica?.freeze();
    await primary?.client().call("CLIENT", "KILL", "TYPE", "replica");
    const lost = await locks.acquire(unknown, { ttlMs: 30_000 });
    primary?.kill("SIGKILL");
    replica?.thaw();
    await cluster.healthy();
    await Promise.allSettled([kept.extend(), lost.extend()]);
    await abortOf(lost.signal);
    expect(reasonOf(lost.signal)).toBe("expired");
    kept.throwIfLost();
    expect(await cluster.ownerOf(slotOfLock(known))).toBe(replica);
    const again = await locks.acquire(unknown, { waitMs: 30_000 });
    expect(again.fencingToken).toBeGreaterThan(lost.fencingToken);
    expect(await again.release()).toBe(true);
    expect(await kept.release()).toBe(true);
  });

  test("a waiter whose primary is unresponsive is served by the next primary, whatever its client", async () => {
    await using fixture = await ClusterFixture.open({ primaries: 3, replicas: 3 });
    const { cluster } = fixture;
    const holder = fixture.locks();
    const all = await fixture.locksPerLibrary();
    const keyOf = (name: string): string => `{silent}:${name}`;
    const waits = await Promise.all(
      Array.from(all, async ([name, locks]) => {
        const lease = await holder.acquire(keyOf(name), { ttlMs: 60_000 });
        const waiter = locks.acquire(keyOf(name), { waitMs: 90_000 });
        await waitUntil(
          async () => (await holder.inspect(keyOf(name))).waiterCount === 1,
          `${name} is queued`,
        );
        return { name, lease, waiter };
      }),
    );
    const primary = await cluster.ownerOf(slotOfLock(keyOf("")));
    expect(await primary.client().call("WAIT", 1, 10_000)).toBe(1);
    primary.freeze();
    fixture.onCleanup(() => {
      primary.thaw();
    });
    await cluster.healthy();
    await waitUntil(
      async () => (await cluster.ownerOf(slotOfLock(keyOf("")))) !== primary,
      "the slot has another primary",
    );
    for (const { name, lease, waiter } of waits) {
      expect(await lease.release(), name).toBe(true);
      const next = await waiter;
      expect(next.fencingToken, name).toBeGreaterThan(lease.fencingToken);
      expect(await next.release(), name).toBe(true);
    }
  });
});
