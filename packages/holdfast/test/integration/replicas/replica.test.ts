import { EngineError, type Replication } from "holdfast";
import { expect, test } from "vitest";
import { rejection, stablePort, waitUntil, type RedisServer } from "@holdfast/test-kit";

import { connect, newKey, onSharedRedis, open, ownServer, warmUp } from "../../support/fault-fixture.ts";

onSharedRedis("A server that became a replica", () => {
  test("refuses writes without an unknown outcome, and serves again as a primary", async () => {
    const server = await ownServer();
    const locks = open(connect(server.port));
    await warmUp(locks);
    await becomeReplica(server);
    const { error } = await rejection(locks.semaphore(newKey(), { limit: 1 }).setLimit(2));
    expect(error).toBeInstanceOf(EngineError);
    expect(error).toMatchObject({ outcome: "none", retryable: true });
    expect(String(error)).toContain("READONLY");

    const waiting = locks.acquire(newKey(), { waitMs: 60_000 });
    await becomePrimary(server);
    expect(await (await waiting).release()).toBe(true);
  });

  test("does not verify notifications", async () => {
    const server = await ownServer();
    await becomeReplica(server);
    const locks = open(connect(server.port));
    await rejection(locks.inspect("any key makes it connect"));
    await waitUntil(
      async () => (await locks.admin.nodes())[0]?.notifications === "unavailable",
      "the client has tried in vain",
    );
    expect(await locks.admin.nodes()).toMatchObject([
      { reachable: true, role: "slave", replication: { replicas: [], isLinkUp: false } },
    ]);
  });

  test("reports as a primary its replicas, their lag, and how many count", async () => {
    const args = ["--min-replicas-to-write", "1", "--repl-diskless-sync-delay", "0"];
    const primary = await ownServer({ args });
    const replica = await ownServer({ args: ["--replicaof", `127.0.0.1 ${primary.port}`] });
    const locks = open(connect(primary.port));
    const reportedReplication = async (): Promise<Replication | null | undefined> =>
      (await locks.admin.nodes())[0]?.replication;
    await waitUntil(async () => (await reportedReplication())?.goodReplicas === 1, "the replica follows");
    expect(await reportedReplication()).toEqual({
      offset: expect.any(Number) as number,
      isLinkUp: null,
      goodReplicas: 1,
      replicas: [
        {
          address: `127.0.0.1:${replica.port}`,
          isOnline: true,
          lagBytes: expect.toSatisfy((bytes: number) => bytes >= 0) as number,
          sinceLastAckMs: expect.toSatisfy((ms: number) => ms >= 0) as number,
        },
      ],
    });
  });

  test("does not report a value beside a refused write, because the value may be old", async () => {
    const server = await ownServer();
    const locks = open(connect(server.port));
    const key = newKey();
    await using lease = await locks.acquire(key, { renew: false });
    await becomeReplica(server);
    const [verified, extended] = await Promise.allSettled([
      locks.checkFence(key, lease.fencingToken),
      lease.extend(),
    ]);
    expect(extended).toMatchObject({ status: "rejected", reason: { code: "engine-unavailable" } });
    expect(verified).toMatchObject({ status: "rejected", reason: { code: "engine-unavailable" } });
    await becomePrimary(server);
  });

  test("refuses reads as well, and no lease is lost by such a read", async () => {
    const server = await ownServer();
    const locks = open(connect(server.port));
    const others = open(connect(server.port), { commandTimeoutMs: 1_000 });
    await Promise.all([warmUp(locks), warmUp(others)]);
    const [key, missing] = [newKey(), newKey()];
    const { fencingToken } = await locks.acquire(key, { renew: false });
    const lease = await locks.acquire(missing, { renew: false });
    const latch = locks.latch(newKey(), { count: 3, ttlMs: 60_000 });
    await latch.countDown({ attemptId: "one" });
    await server.client().del(`lock:${missing}`); // a replica that lacks the lock
    await becomeReplica(server);
    for (const request of [
      () => locks.checkFence(key, fencingToken),
      () => locks.inspect(key),
      () => others.tryAcquire(key),
      () => others.all([key, newKey()]).tryAcquire(),
      () => latch.countDown({ attemptId: "one" }),
      () => locks.admin.list({ prefix: "nothing begins so" }),
      () => lease.extend(),
    ]) {
      const { error } = await rejection(request());
      expect(error).toMatchObject({ code: "engine-unavailable", retryable: true });
      expect(String(error)).toContain("READONLY");
    }
    await becomePrimary(server);
  });
});

/** Makes the server a replica of a primary that does not exist. */
async function becomeReplica(server: RedisServer): Promise<void> {
  await server.client().replicaof("127.0.0.1", await stablePort());
}

async function becomePrimary(server: RedisServer): Promise<void> {
  await server.client().replicaof("NO", "ONE");
}
