import { createLocks, EngineError } from "holdfast";
import { redis } from "holdfast/redis";
import { rejection, waitUntil } from "@holdfast/test-kit";
import { expect, test } from "vitest";

import { ClusterFixture, slotOfLock } from "../../support/cluster-fixture.ts";
import { onRedis } from "../../support/servers.ts";

onRedis("A cluster that stopped serving", () => {
  test("is reported as such, keeps no residue, and is awaited", async () => {
    await using fixture = await ClusterFixture.open({ primaries: 1, replicas: 0 });
    const client = fixture.client();
    await waitUntil(() => client.status === "ready", "the client is connected");
    const locks = createLocks(redis(client, { commandTimeoutMs: 2_000 }), { closeTimeoutMs: 1_000 });
    fixture.onCleanup(() => locks.close());
    await locks.withLock("key", () => undefined);
    const probe = fixture.cluster.servers[0]?.client();
    const state = async (): Promise<string> => String(await probe?.call("CLUSTER", "INFO"));
    const missing = (slotOfLock("key") + 1) % 16_384;
    await probe?.call("CLUSTER", "DELSLOTS", missing);
    await waitUntil(async () => (await state()).includes("cluster_state:fail"), "the cluster stops serving");

    const { error } = await rejection(locks.tryAcquire("key"));
    expect(error).toBeInstanceOf(EngineError);
    expect(error).toMatchObject({ code: "engine-unavailable", retryable: true }); // a repeat may be under way when the wait ends
    expect(String(error)).toContain("CLUSTERDOWN");
    expect((await locks.admin.nodes())[0]?.cluster).toMatchObject({ state: "fail", slots: 16_383 });

    const waiting = locks.acquire("key", { waitMs: 20_000 }); // the residue of a try would stay for 30 s
    await probe?.call("CLUSTER", "ADDSLOTS", missing);
    expect(await (await waiting).release()).toBe(true);
  });
});
