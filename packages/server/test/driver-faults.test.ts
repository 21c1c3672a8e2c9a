import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { createLocks, type Locks } from "holdfast";
import { http } from "holdfast/http";
import { afterEach, beforeEach, expect, test } from "vitest";
import { rejection, startProxy, waitUntil, type Proxy } from "@holdfast/test-kit";

import { createService, type Service } from "../src/index.ts";
import { acquire, sendRequest, inspect } from "./support/service.ts";

let service: Service;
let url: string;
let proxy: Proxy;
let locks: Locks;

beforeEach(async () => {
  service = await createService();
  url = await service.listen({ port: 0 });
  proxy = await startProxy(Number(new URL(url).port));
  locks = createLocks(http(`http://127.0.0.1:${proxy.port}`, { requestTimeoutMs: 1_000 }));
});

afterEach(async () => {
  await locks.close();
  await proxy.stop();
  await service.close();
});

async function isFree(key: string): Promise<boolean> {
  const { holders, waiterCount } = await inspect(url, key);
  return holders.length === 0 && waiterCount === 0;
}

test("a try with a lost response has an unknown outcome, and its lock is free after the TTL at the latest", async () => {
  const lost = proxy.loseNextReply(/POST \/v1\/leases/);
  const { error } = await rejection(locks.tryAcquire("key", { ttlMs: 500, renew: false }));
  expect(error).toMatchObject({ code: "engine-unavailable", outcome: "unknown" });
  await lost;
  const lease = await acquire(url, { key: "key", waitMs: 15_000 });
  expect(lease.keys).toEqual(["key"]);
});

test("the grant of a try with a late response is released", async () => {
  proxy.pause("replies");
  const { error } = await rejection(locks.tryAcquire("key", { ttlMs: 60_000 }));
  expect(error).toMatchObject({ code: "engine-unavailable", outcome: "unknown" });
  expect((await inspect(url, "key")).holders).toHaveLength(1);
  proxy.resume("replies");
  await waitUntil(() => isFree("key"), "the late grant is released");
});

test("the grant of an acquire with a late response is released, and the next acquire is granted", async () => {
  proxy.pause("replies");
  const acquiring = locks.acquire("key", { ttlMs: 60_000, waitMs: 20_000 });
  await waitUntil(async () => (await inspect(url, "key")).holders.length === 1, "it is granted");
  await waitUntil(async () => (await inspect(url, "key")).waiterCount === 1, "it asks again");
  proxy.resume("replies");
  const lease = await acquiring;
  lease.throwIfLost();
  expect((await inspect(url, "key")).fencingToken).toBe(lease.fencingToken.toString());
  expect(await lease.release()).toBe(true);
  await waitUntil(() => isFree("key"), "nothing is left");
});

test("a wait continues after a disconnection, and is granted", async () => {
  const held = await acquire(url, { key: "key", ttlMs: 60_000 });
  const waiting = locks.acquire("key", { waitMs: 20_000 });
  for (let round = 0; round < 3; round += 1) {
    await waitUntil(async () => (await inspect(url, "key")).waiterCount === 1, "it waits");
    proxy.cut();
    await waitUntil(async () => (await inspect(url, "key")).waiterCount === 0, "it has left");
  }
  await waitUntil(async () => (await inspect(url, "key")).waiterCount === 1, "it waits again");
  await sendRequest(url, "DELETE", `/v1/leases/${held.leaseId}`);
  expect(await (await waiting).release()).toBe(true);
});

test("an undelivered grant after a wait ends with its claim, and the next waiter gets the lock", async () => {
  const held = await acquire(url, { key: "key", ttlMs: 60_000 });
  const waiting = locks.acquire("key", { ttlMs: 60_000, waitMs: 20_000 });
  await waitUntil(async () => (await inspect(url, "key")).waiterCount === 1, "it waits");
  proxy.dropMatching(/event: granted/);
  await sendRequest(url, "DELETE", `/v1/leases/${held.leaseId}`);
  const lease = await acquire(url, { key: "key", waitMs: 15_000 });
  proxy.dropMatching(undefined);
  proxy.cut(); // the connection was half-open until now, so the driver sends the request again
  await waitUntil(async () => (await inspect(url, "key")).waiterCount === 1, "it waits again");
  await sendRequest(url, "DELETE", `/v1/leases/${lease.leaseId}`);
  const own = await waiting;
  expect(own.fencingToken).toBeGreaterThan(BigInt(lease.fencingToken));
  expect(await own.release()).toBe(true);
});

test("an abort at any moment leaves no residue", async () => {
  for (let round = 0; round < 30; round += 1) {
    const key = `key:${round}`;
    const held = await acquire(url, { key, ttlMs: 60_000 });
    const abort = new AbortController();
    const waiting = locks.acquire(key, { signal: abort.signal, ttlMs: 60_000 }).then(
      (lease) => lease.release(),
      () => false,
    );
    if (round % 2 === 0) {
      await waitUntil(async () => (await inspect(url, key)).waiterCount === 1, "it waits");
    }
    const released = sendRequest(url, "DELETE", `/v1/leases/${held.leaseId}`);
    for (let turn = 0; turn < round; turn += 1) {
      await new Promise(setImmediate);
    }
    abort.abort();
    await Promise.all([released, waiting]);
    await waitUntil(() => isFree(key), "it has no holder and no waiter");
  }
});

test("an unanswered release is retried until a reply comes", async () => {
  const lease = await locks.acquire("key", { ttlMs: 60_000 });
  proxy.refuse(true);
  proxy.cut();
  const { error } = await rejection(lease.release());
  expect(error).toMatchObject({ code: "engine-unavailable" });
  expect((await inspect(url, "key")).holders).toHaveLength(1);
  proxy.refuse(false);
  await waitUntil(() => isFree("key"), "it is released");
});

test("a release with a lost response still releases", async () => {
  const lease = await locks.acquire("key", { ttlMs: 60_000 });
  void proxy.loseNextReply(/DELETE/);
  expect(await lease.release()).toBe(true);
  expect(await isFree("key")).toBe(true);
});

test("a release with a lost response on a reused connection still releases", async () => {
  const lease = await locks.acquire("key", { ttlMs: 60_000, waitMs: 0 });
  void proxy.loseNextReply(/DELETE/);
  expect(await lease.release()).toBe(true);
  expect(await isFree("key")).toBe(true);
});

test("a queued waiter learns that the service hangs, without waiting for the waiters before it", async () => {
  proxy.pause("replies");
  const waits = Array.from({ length: 60 }, () => rejection(locks.acquire("key", { waitMs: 300 })));
  for (const { error } of await Promise.all(waits)) {
    expect(error).toMatchObject({ code: "engine-unavailable", retryable: true });
  }
  proxy.resume("replies");
  await waitUntil(() => isFree("key"), "nothing is left");
});

test("a loss by a hanging service is reported before the validity ends", async () => {
  const lease = await locks.acquire("key", { ttlMs: 1_500 });
  proxy.pause("replies");
  await new Promise((resolve) => {
    lease.signal.addEventListener("abort", resolve);
  });
  expect(lease.signal.reason).toMatchObject({ code: "lease-lost" });
  // Unanswered renewals extend the grant at the service, but not the validity at the client.
  expect(lease.remainingMs()).toBe(0);
  proxy.resume("replies");
});

test("a watch continues after a disconnection, and reports locks that ended during it", async () => {
  const { leaseId } = await acquire(url, { key: "watched:1" });
  const end = new AbortController();
  const events = locks.admin.watch({ prefix: "watched:" }, { signal: end.signal })[Symbol.asyncIterator]();
  expect(await events.next()).toMatchObject({ value: { type: "snapshot", key: "watched:1" } });
  const next = events.next();
  proxy.refuse(true);
  proxy.cut();
  await sendRequest(url, "DELETE", `/v1/leases/${leaseId}`);
  proxy.refuse(false);
  expect(await next).toMatchObject({ value: { type: "gone", key: "watched:1" } });
  await acquire(url, { key: "watched:2" });
  expect(await events.next()).toMatchObject({ value: { key: "watched:2" } });
  end.abort();
  expect((await events.next()).done).toBe(true);
});

test.each([
  ["a page", "<html>Please log in</html>"],
  ["something else", "{}"],
  ["nothing", ""],
  ["a lease without an end", JSON.stringify({ leaseId: "1.a.b", fencingToken: "1", queuedMs: 0 })],
])("a server that replies 200 with %s is no lock service, and grants nothing", async (_, body) => {
  const stranger = createServer((_request, answer) => answer.end(body)).listen(0, "127.0.0.1");
  await once(stranger, "listening");
  const driver = http(`http://127.0.0.1:${(stranger.address() as AddressInfo).port}`);
  const others = createLocks(driver);
  const refused = { code: "engine-unavailable", outcome: "unknown", retryable: true };
  await expect(others.tryAcquire("key")).rejects.toMatchObject(refused);
  await expect(others.acquire("key", { waitMs: 200 })).rejects.toMatchObject(refused);
  const [secret, ttlMs] = ["1.secret", 1_000];
  const given = { key: "key", token: secret, fencingToken: 1n };
  const extended = await driver.extend({ ...given, ttlMs, info: undefined });
  expect(extended).toMatchObject({ outcome: "unknown", error: refused });
  await expect(driver.verify("key", secret)).rejects.toMatchObject(refused);
  await others.close();
  stranger.close();
});
