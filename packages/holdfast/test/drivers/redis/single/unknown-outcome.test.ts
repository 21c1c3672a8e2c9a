import { randomUUID } from "node:crypto";

import { createLocks, type EngineError, type Locks } from "holdfast";
import { redis } from "holdfast/redis";
import { faultyClient, type FaultInjector } from "holdfast/testing";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startRedis, type RedisServer } from "@holdfast/test-kit";

import { onRedis } from "../../../support/servers.ts";

onRedis("after a try that was executed without a reply", () => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await startRedis();
  });

  afterAll(async () => {
    await server.stop();
  });

  async function unanswered(
    key: string,
    attemptId?: string,
  ): Promise<{ locks: Locks; controls: FaultInjector; token: string }> {
    const { connection, controls } = faultyClient(server.client());
    const locks = createLocks(redis(connection, { commandTimeoutMs: 200 }));
    await (await locks.acquire(`${key}:first`)).release(); // the handshake is complete
    controls.dropReply(() => true);
    const tried = locks.tryAcquire(key, { attemptId }).then(
      () => expect.unreachable(),
      (reason: unknown) => reason as EngineError,
    );
    const token = await vi.waitUntil(() => server.client().get(`lock:${key}`), { interval: 5 });
    expect(await tried).toMatchObject({ code: "engine-unavailable", outcome: "unknown" });
    return { locks, controls, token };
  }

  test("the grant is released in the background, and the next try has a token of its own", async () => {
    const key = randomUUID();
    const { locks, controls, token } = await unanswered(key);
    controls.dropReply(0);
    await vi.waitFor(async () => {
      expect(await server.client().get(`lock:${key}`)).toBeNull();
    });
    const lease = await locks.acquire(key);
    expect(await server.client().get(`lock:${key}`)).not.toBe(token);
    expect(await lease.release()).toBe(true);
    await locks.close();
  });

  test("with an attemptId of the caller the repeat has a grant of its own, and the two never coexist", async () => {
    const key = randomUUID();
    const { locks, controls, token } = await unanswered(key, "order 7");
    const first = await server.client().hget(`holdfast:fence:{lock:${key}}`, "first");
    controls.dropReply(0);
    const lease = await locks.acquire(key, { attemptId: "order 7" }); // after the clean-up of the first
    expect(await server.client().get(`lock:${key}`)).not.toBe(token);
    expect(lease.fencingToken).toBeGreaterThan(BigInt(first ?? ""));
    const other = createLocks(redis(server.client()));
    expect(await other.tryAcquire(key, { attemptId: "order 7" })).toBeNull();
    expect(await lease.release()).toBe(true);
    await Promise.all([locks.close(), other.close()]);
  });
});
