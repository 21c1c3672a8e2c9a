import { createLocks, type Locks } from "holdfast";
import { redis } from "holdfast/redis";
import {
  limitMs,
  abortOf,
  startSentinels,
  waitUntil,
  type RedisServer,
  type Sentinels,
} from "@holdfast/test-kit";
import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";

import { reasonOf } from "../../support/fault-fixture.ts";
import { sentinelLibraries, type OpenSentinelClient } from "../../support/sentinel-clients.ts";
import { onRedis } from "../../support/servers.ts";

/** Much longer than any failover takes, so that no result here is due to a TTL. */
const ttlMs = 60_000;

/** Servers with sentinels, and two processes that lock by them. */
interface Failover {
  readonly lab: Sentinels;
  readonly former: RedisServer;
  readonly mine: Locks;
  readonly others: Locks;
}

/** A test with servers of its own, which may run beside others. */
function withSentinels(
  openClient: OpenSentinelClient,
  body: (failover: Failover) => Promise<void>,
): () => Promise<void> {
  return async () => {
    const lab = await startSentinels();
    const cleanups: (() => Promise<unknown>)[] = [];
    const open = async (): Promise<Locks> => {
      const { client, close } = await openClient(lab);
      const locks = createLocks(redis(client, { commandTimeoutMs: 500 }));
      cleanups.push(close, () => locks.close());
      await locks.withLock("warm up", () => undefined);
      await waitUntil(
        async () => (await locks.admin.nodes())[0]?.notifications === "verified",
        "notifications are verified",
      );
      return locks;
    };
    try {
      await body({ lab, former: await lab.primary(), mine: await open(), others: await open() });
    } finally {
      for (const cleanup of cleanups.reverse()) {
        await cleanup();
      }
      await lab.stop();
    }
  };
}

onRedis("After a failover", () => {
  describe.each(Object.entries(sentinelLibraries))("by %s,", (_name, openClient) => {
    test.concurrent(
      "of a primary that hangs, leases and waiters move to the new one",
      withSentinels(openClient, async ({ lab, former, mine, others }) => {
        const lease = await mine.acquire("key", { ttlMs });
        const waiting = others.acquire("key", { ttlMs, waitMs: 120_000 });
        await waitUntil(
          async () => (await mine.inspect("key")).waiterCount === 1,
          "the other client is queued",
        );
        await replicated(former);

        former.freeze();
        const primary = await lab.replaced(former);
        const probe = primary.client();
        const renewed = (): Promise<boolean> =>
          lease.extend().then(
            () => true,
            () => false,
          );
        await waitUntil(renewed, "the lease can be renewed there", limitMs(30_000));
        await waitUntil(
          async () => (await others.admin.nodes())[0]?.notifications === "verified",
          "the other client's notifications are verified there",
          limitMs(30_000),
        );
        expect(lease.signal.aborted).toBe(false);
        const { fencingToken } = lease;
        expect(await lease.release()).toBe(true);
        const next = await waiting;
        expect(next.fencingToken).toBeGreaterThan(fencingToken);
        expect(await probe.get("lock:key")).not.toBeNull();
        await next.release();
      }),
    );

    test.concurrent(
      "of a primary that was asked to step down as well",
      withSentinels(openClient, async ({ lab, former, mine, others }) => {
        const lease = await mine.acquire("key", { ttlMs: 12_000 });
        const waiting = others.acquire("key", { ttlMs, waitMs: 120_000 });
        await waitUntil(
          async () => (await mine.inspect("key")).waiterCount === 1,
          "the other client is queued",
        );
        await replicated(former);
        await lab.sentinels[0]?.client().call("sentinel", "failover", lab.name);
        const primary = await lab.replaced(former);
        const probe = primary.client();
        await waitUntil(
          async () => (await probe.pttl("lock:key")) > 11_000,
          "the lease is renewed there",
          limitMs(30_000),
        );
        expect(lease.signal.aborted).toBe(false);
        expect(await lease.release()).toBe(true);
        await (await waiting).release();
      }),
    );

    test.concurrent(
      "of a primary that continues as one, because the sentinels may not reconfigure it",
      withSentinels(openClient, async ({ lab, former, mine }) => {
        const lease = await mine.acquire("key", { ttlMs });
        await replicated(former);
        const direct = former.client();
        await direct.call("acl", "setuser", "default", "-client|kill"); // in one transaction with the command that would make it a replica
        await lab.sentinels[0]?.client().call("sentinel", "failover", lab.name);
        const primary = await lab.replaced(former);
        const probe = primary.client();
        const isRenewedThere = async (): Promise<boolean> => {
          await lease.extend().catch(() => undefined);
          const [there, here] = await Promise.all([probe.pttl("lock:key"), direct.pttl("lock:key")]);
          return there > here + 1_000;
        };
        await waitUntil(
          isRenewedThere,
          "the lease is renewed there, and not at the former primary",
          limitMs(30_000),
        );
        expect(lease.signal.aborted).toBe(false);
        expect(await lease.release()).toBe(true);
        expect(await probe.exists("lock:key")).toBe(0);
        expect(await direct.role()).toMatchObject({ 0: "master" });
      }),
    );

    test.concurrent(
      "a lease whose key did not survive is lost as soon as the new primary replies",
      withSentinels(openClient, async ({ lab, former, mine, others }) => {
        const kept = await mine.acquire("kept", { ttlMs });
        await replicated(former);
        const followers = lab.servers.filter((server) => server !== former);
        for (const follower of followers) {
          follower.freeze();
        }
        await former.client().call("client", "KILL", "TYPE", "replica");
        const lease = await mine.acquire("key", { ttlMs });
        const { fencingToken, validUntil } = lease;
        former.kill("SIGKILL");
        for (const follower of followers) {
          follower.thaw();
        }
        const lostAt = await abortOf(lease.signal);
        expect(reasonOf(lease.signal)).toBe("expired");
        expect(lostAt).toBeLessThan(validUntil - ttlMs / 3);
        expect(kept.signal.aborted).toBe(false);
        const next = await others.acquire("key", { waitMs: 60_000 });
        expect(next.fencingToken).toBeGreaterThan(fencingToken);
        expect(await next.release()).toBe(true);
        expect(await kept.release()).toBe(true);
      }),
    );
  });
});

onRedis("A client of sentinels that was ended and connected again", () => {
  test("locks again, by new connections of the library", async () => {
    const lab = await startSentinels();
    const client = new Redis({ name: lab.name, sentinels: [...lab.addresses] });
    client.on("error", () => undefined);
    const locks = createLocks(redis(client, { commandTimeoutMs: 500 }));
    try {
      await locks.withLock("key", () => undefined);
      client.disconnect();
      await waitUntil(() => client.status === "end", "the client has ended");
      await client.connect();
      await locks.withLock("key", { waitMs: 30_000 }, () => undefined);
      await waitUntil(
        async () => (await locks.admin.nodes())[0]?.notifications === "verified",
        "notifications are verified",
      );
      await waitUntil(async () => {
        const listeners = await lab.sentinels[0]?.client().call("client", "list", "type", "pubsub");
        return String(listeners).match(/^id=/gm)?.length === 1;
      }, "the sentinel has one subscriber");
    } finally {
      await locks.close();
      client.disconnect();
      await lab.stop();
    }
  });
});

/** Resolves when a replica has all writes of the primary. */
async function replicated(primary: RedisServer): Promise<void> {
  const probe = primary.client();
  await probe.set("marker", "1");
  await probe.call("wait", "2", "0");
}
