import { createLocks, isLockError, type Locks } from "holdfast";
import { connect } from "holdfast/connect";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { startRedis, stablePort, waitUntil, type RedisServer } from "@holdfast/test-kit";

import {
  acquire,
  sendRequest,
  inspect,
  refusal,
  startInstance,
  type ServiceInstance,
} from "./support/service.ts";

let redis: RedisServer;
const instances: ServiceInstance[] = [];

beforeAll(async () => {
  redis = await startRedis();
});

afterEach(async () => {
  await Promise.all(instances.splice(0).map((instance) => instance.kill("SIGKILL")));
});

afterAll(() => redis.stop());

async function start(port = 0): Promise<ServiceInstance> {
  const instance = await startInstance({
    HOLDFAST_URL: `redis://127.0.0.1:${redis.port}`,
    HOLDFAST_PORT: String(port),
    HOLDFAST_DRAIN_MS: "5000",
  });
  instances.push(instance);
  return instance;
}

test("a lease of one instance is renewed, shown and released by another", async () => {
  const [a, b] = [await start(), await start()];
  const { leaseId, fencingToken } = await acquire(a.url, {
    key: "shared",
    owner: "me",
    reason: "why",
    labels: { a: "b" },
  });
  expect(await refusal(b.url, "POST", "/v1/leases", { key: "shared" })).toMatchObject({
    code: "wait-timeout",
    holder: { owner: "me" },
  });
  expect((await sendRequest(b.url, "POST", `/v1/leases/${leaseId}/renew`, { ttlMs: 60_000 })).status).toBe(
    200,
  );
  expect((await sendRequest(b.url, "GET", `/v1/leases/${leaseId}`)).status).toBe(200);
  // A renewal by another instance keeps the holder's metadata.
  expect((await inspect(a.url, "shared")).holders).toMatchObject([
    { owner: "me", reason: "why", labels: { a: "b" }, fencingToken },
  ]);
  expect(await sendRequest(b.url, "DELETE", `/v1/leases/${leaseId}`)).toMatchObject({
    body: { released: true },
  });
  await acquire(a.url, { key: "shared" });
});

test("an instance that is killed loses nothing but its open waits", async () => {
  const [a, b] = [await start(), await start()];
  const held = await acquire(a.url, { key: "kept", ttlMs: 60_000 });
  const lost = expect(acquire(a.url, { key: "kept", waitMs: 60_000 })).rejects.toThrow();
  await waitUntil(async () => (await inspect(b.url, "kept")).waiterCount === 1, "one waits by the first");
  const waiting = acquire(b.url, { key: "kept", waitMs: 60_000 });
  await waitUntil(async () => (await inspect(b.url, "kept")).waiterCount === 2, "one waits by the second");
  await a.kill("SIGKILL");
  await lost;
  expect((await sendRequest(b.url, "POST", `/v1/leases/${held.leaseId}/renew`, {})).status).toBe(200);
  expect(await sendRequest(b.url, "DELETE", `/v1/leases/${held.leaseId}`)).toMatchObject({
    body: { released: true },
  });
  const lease = await waiting; // after the abandoned request
  expect(BigInt(lease.fencingToken)).toBeGreaterThan(BigInt(held.fencingToken));
});

test("workers on two instances that are killed and restarted never hold the lock together", async () => {
  const ports = [await stablePort(), await stablePort()];
  const running = [await start(ports[0]), await start(ports[1])];
  const workers: Locks[] = [];
  for (let worker = 0; worker < 6; worker += 1) {
    workers.push(createLocks(await connect(`http://127.0.0.1:${ports[worker % 2]}`)));
  }
  let inside = 0;
  let highest = 0n;
  let done = 0;
  const end = new AbortController();
  const work = async (locks: Locks): Promise<void> => {
    while (!end.signal.aborted) {
      try {
        await locks.withLock(
          "contended",
          { ttlMs: 1_000, waitMs: 20_000, signal: end.signal },
          async (lease) => {
            lease.throwIfLost();
            expect(lease.fencingToken).toBeGreaterThan(highest);
            highest = lease.fencingToken;
            inside += 1;
            expect(inside).toBe(1);
            await new Promise(setImmediate);
            inside -= 1;
            done += 1;
          },
        );
      } catch (error) {
        if (!end.signal.aborted && !isLockError(error)) {
          throw error;
        }
      }
    }
  };
  const all = Promise.all(workers.map(work));
  for (const victim of [0, 1, 0]) {
    const before = done;
    await waitUntil(() => done > before + 20, "they work", 20_000);
    await (running[victim] as ServiceInstance).kill("SIGKILL");
    const without = done;
    await waitUntil(() => done > without + 20, "the others go on", 20_000);
    running[victim] = await start(ports[victim] as number);
  }
  end.abort();
  await all;
  await Promise.all(workers.map((locks) => locks.close()));
  expect(inside).toBe(0);
});

test("SIGTERM ends waits with a problem, allows releases, and then ends the process", async () => {
  const [a, b] = [await start(), await start()];
  const held = await acquire(a.url, { key: "drained", ttlMs: 60_000 });
  const waiting = sendRequest(a.url, "POST", "/v1/leases", { key: "drained", waitMs: 60_000 });
  await waitUntil(async () => (await inspect(b.url, "drained")).waiterCount === 1, "one waits");
  const exit = a.kill("SIGTERM");
  expect(await waiting).toMatchObject({
    status: 503,
    body: { code: "draining", retryable: true, outcome: "none" },
  });
  expect(await exit).toBe(0);
  expect((await inspect(b.url, "drained")).waiterCount).toBe(0);
  expect(await sendRequest(b.url, "DELETE", `/v1/leases/${held.leaseId}`)).toMatchObject({
    body: { released: true },
  });
});
