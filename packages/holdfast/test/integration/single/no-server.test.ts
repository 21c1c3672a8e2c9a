import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";

import { EngineError, type Lease, type Locks } from "holdfast";
import { expect, test } from "vitest";
import { rejection, waitUntil } from "@holdfast/test-kit";

import {
  connect,
  direct,
  newKey,
  onSharedRedis,
  open,
  ownProxy,
  ownServer,
  shared,
  slackMs,
  warmUp,
} from "../../support/fault-fixture.ts";

onSharedRedis("a lease on a real server", () => {
  test("with the server down a try rejects within its budget, never with null, and recovers", async () => {
    const server = await ownServer();
    const tries = [
      { budgetMs: 500, locks: open(connect(server.port), { commandTimeoutMs: 500 }) },
      { budgetMs: 2_000, locks: open(connect(server.port)) },
      { budgetMs: 500, locks: open(connect(server.port), { commandTimeoutMs: 500 }) },
    ] as const;
    await Promise.all(tries.slice(0, 2).map(({ locks }) => warmUp(locks))); // the third client never reached the server
    server.kill("SIGKILL");
    await server.stop();
    await Promise.all(
      tries.map(async ({ locks, budgetMs }) => {
        for (let attempt = 0; attempt < 2; attempt += 1) {
          const { error, afterMs } = await rejection(locks.tryAcquire(newKey()));
          expect(error).toBeInstanceOf(EngineError);
          expect(error).toMatchObject({ code: "engine-unavailable", retryable: true });
          expect(afterMs).toBeLessThan(budgetMs + slackMs);
        }
      }),
    );
    await ownServer({ port: server.port });
    for (const { locks } of tries) {
      let lease: Lease | null | undefined;
      await waitUntil(async () => {
        lease = await locks.tryAcquire(newKey()).catch(() => undefined);
        return lease !== undefined;
      }, "the server is back");
      expect(await lease?.release()).toBe(true);
    }
  });

  test("an acquire, and a waiter, live through an outage of a second", async () => {
    const server = await ownServer();
    const [holder, waiter, late] = [0, 1, 2].map(() =>
      open(connect(server.port), { commandTimeoutMs: 500 }),
    ) as [Locks, Locks, Locks];
    const key = newKey();
    await holder.acquire(key, { ttlMs: 60_000 });
    const waiting = waiter.acquire(key, { waitMs: 20_000 });
    await waitUntil(async () => (await holder.inspect(key)).waiterCount === 1, "the waiter is queued");
    server.kill("SIGKILL");
    await server.stop();
    const acquiring = late.acquire(newKey(), { waitMs: 20_000 });
    await pause(1_000);
    await ownServer({ port: server.port });
    const [waited, acquired] = await Promise.all([waiting, acquiring]);
    expect([waited.remainingMs() > 0, acquired.remainingMs() > 0]).toEqual([true, true]);
  });

  test("an acquire without a server until its wait ends reports that, and not a held lock", async () => {
    const server = await ownServer();
    const locks = open(connect(server.port), { commandTimeoutMs: 300 });
    await server.stop();
    const { error, afterMs } = await rejection(locks.acquire(newKey(), { waitMs: 900 }));
    expect(error).toMatchObject({ code: "engine-unavailable", retryable: true });
    expect(afterMs).toBeGreaterThan(850);
    expect(afterMs).toBeLessThan(900 + slackMs);
  });

  test.each([
    ["keeps commands for later", {}],
    [
      "keeps nothing",
      { enableOfflineQueue: false, autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 },
    ],
  ])(
    "an unreachable engine at the release does not fail the work, and is reported later, by a client that %s",
    async (_how, clientOptions) => {
      const proxy = await ownProxy(shared);
      const client = connect(proxy.port, clientOptions);
      await once(client, "ready");
      const locks = open(client, { commandTimeoutMs: 300 });
      await warmUp(locks);
      const [key, other] = [newKey(), newKey()];
      const lease = await locks.acquire(other, { ttlMs: 60_000 });
      const value = await locks.withLock(key, { ttlMs: 60_000 }, () => {
        proxy.refuse(true);
        proxy.cut();
        return "done";
      });
      expect(value).toBe("done");
      const { error, afterMs } = await rejection(lease.release());
      expect(error).toMatchObject({ code: "engine-unavailable" });
      expect(afterMs).toBeLessThan(300 + slackMs);
      expect(await direct.exists(`lock:${key}`, `lock:${other}`)).toBe(2);
      proxy.refuse(false);
      await waitUntil(async () => (await direct.exists(`lock:${key}`, `lock:${other}`)) === 0, "released");
    },
  );
});
