import { afterAll, beforeAll, expect, test } from "vitest";
import type { WireLease } from "holdfast/http";
import { waitUntil } from "@holdfast/test-kit";

import { createService, type Service } from "../src/index.ts";
import { acquire, sendRequest, inspect, openStream, refusal } from "./support/service.ts";

let service: Service;
let url: string;

beforeAll(async () => {
  service = await createService();
  url = await service.listen({ port: 0 });
});

afterAll(() => service.close());

let count = 0;
const newKey = (): string => `order:${(count += 1)}`;

test("a lock is tried, shown, renewed and released, each by one request", async () => {
  const key = newKey();
  const lease = await acquire(url, {
    key,
    ttlMs: 5_000,
    owner: { name: "billing", host: "a", pid: 7 },
    reason: "charge",
  });
  expect(lease).toMatchObject({ key, keys: [key], ttlMs: 5_000, queuedMs: 0, guarantee: "process" });
  expect(lease.validMs).toBeGreaterThan(3_000);
  expect(lease.validMs).toBeLessThan(5_000);
  expect(BigInt(lease.fencingToken)).toBeGreaterThan(0n);
  expect(await inspect(url, key)).toMatchObject({
    holders: [{ owner: "billing@a:7", reason: "charge", fencingToken: lease.fencingToken }],
  });
  const renewed = await sendRequest(url, "POST", `/v1/leases/${lease.leaseId}/renew`, { ttlMs: 60_000 });
  expect(renewed).toMatchObject({ status: 200, body: { ttlMs: 60_000, fencingToken: lease.fencingToken } });
  expect((await inspect(url, key)).remainingMs).toBeGreaterThan(30_000);
  const released = await sendRequest(url, "DELETE", `/v1/leases/${lease.leaseId}`);
  expect(released).toMatchObject({ status: 200, body: { released: true } });
  expect(await inspect(url, key)).toMatchObject({ holders: [], waiterCount: 0 });
});

test("a held lock is refused at once with 423 and its holder", async () => {
  const key = newKey();
  await acquire(url, { key, owner: "first" });
  const problem = await refusal(url, "POST", "/v1/leases", { key });
  expect(problem).toMatchObject({
    status: 423,
    code: "wait-timeout",
    key,
    outcome: "none",
    holder: { owner: "first" },
  });
  const response = await sendRequest(url, "POST", "/v1/leases", { key, waitMs: 50 });
  expect(response).toMatchObject({ status: 423, body: { code: "wait-timeout" } });
  expect(response.headers.get("content-type")).toBe("application/problem+json");
  expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
});

test("a waiting request gets the lock for its whole TTL after the release", async () => {
  const key = newKey();
  const first = await acquire(url, { key });
  const second = acquire(url, { key, waitMs: 20_000, ttlMs: 7_000, owner: "second" });
  await waitUntil(async () => (await inspect(url, key)).waiterCount === 1, "the second waits");
  await sendRequest(url, "DELETE", `/v1/leases/${first.leaseId}`);
  const lease = await second;
  expect(BigInt(lease.fencingToken)).toBeGreaterThan(BigInt(first.fencingToken));
  expect(lease.queuedMs).toBeGreaterThan(0);
  expect(lease.validMs).toBeGreaterThan(5_000);
  expect((await inspect(url, key)).holders[0]?.owner).toBe("second");
});

test("reading a lease never extends it", async () => {
  const key = newKey();
  const lease = await acquire(url, { key, ttlMs: 600 });
  const seen: number[] = [];
  await waitUntil(async () => {
    const { status, body } = await sendRequest(url, "GET", `/v1/leases/${lease.leaseId}`);
    seen.push(status === 200 ? (body as WireLease).validMs : 0);
    return status === 410;
  }, "the lease expires in spite of reads");
  expect(seen).toEqual(seen.toSorted((a, b) => b - a));
});

test("an ended lease is 410 for a renewal and a read, and `released: false` for a release", async () => {
  const key = newKey();
  const { leaseId, fencingToken } = await acquire(url, { key });
  await sendRequest(url, "POST", "/v1/lock/break", { key, fencingToken, reason: "test" });
  for (const [method, path] of [
    ["GET", ""],
    ["POST", "/renew"],
  ] as const) {
    const problem = await refusal(
      url,
      method,
      `/v1/leases/${leaseId}${path}`,
      method === "POST" ? {} : undefined,
    );
    expect(problem).toMatchObject({
      status: 410,
      code: "lease-lost",
      reason: "broken",
      key,
      outcome: "none",
    });
  }
  expect(await sendRequest(url, "DELETE", `/v1/leases/${leaseId}`)).toMatchObject({
    status: 200,
    body: { released: false },
  });
});

test("one request renews many leases, with one result for each", async () => {
  const [one, released] = [await acquire(url, { key: newKey() }), await acquire(url, { key: newKey() })];
  await sendRequest(url, "DELETE", `/v1/leases/${released.leaseId}`);
  const { status, body } = await sendRequest(url, "POST", "/v1/renew", {
    leases: [{ leaseId: one.leaseId, ttlMs: 40_000 }, { leaseId: released.leaseId }, { leaseId: "nonsense" }],
  });
  expect(status).toBe(200);
  expect(body).toMatchObject({
    leases: [{ leaseId: expect.any(String), ttlMs: 40_000 }, { code: "lease-lost" }, { code: "not-found" }],
  });
});

test("several keys are one lease: all of them or none", async () => {
  const [a, b] = [newKey(), newKey()].sort() as [string, string];
  const single = await acquire(url, { key: b });
  expect(await refusal(url, "POST", "/v1/leases", { keys: [b, a] })).toMatchObject({
    code: "wait-timeout",
    key: b,
  });
  expect((await inspect(url, a)).holders).toEqual([]);
  const both = acquire(url, { keys: [b, a, b], waitMs: 20_000 });
  await waitUntil(async () => (await inspect(url, b)).waiterCount === 1, "it waits for the second");
  await sendRequest(url, "DELETE", `/v1/leases/${single.leaseId}`);
  const lease = await both;
  expect(lease).toMatchObject({ key: a, keys: [a, b], fencingTokens: { [a]: lease.fencingToken } });
  const renewed = await sendRequest(url, "POST", `/v1/leases/${lease.leaseId}/renew`, { ttlMs: 50_000 });
  expect(renewed.status).toBe(200);
  expect((await inspect(url, b)).remainingMs).toBeGreaterThan(40_000);
  expect(await sendRequest(url, "DELETE", `/v1/leases/${lease.leaseId}`)).toMatchObject({
    body: { released: true },
  });
  expect((await inspect(url, b)).holders).toEqual([]);
});

test("readers share, a writer and the permits of a semaphore have their bounds", async () => {
  const key = newKey();
  await acquire(url, { key, mode: "read" });
  const reader = await acquire(url, { key, mode: "read" });
  expect(await refusal(url, "POST", "/v1/leases", { key, mode: "write" })).toMatchObject({
    code: "wait-timeout",
  });
  expect(await refusal(url, "POST", "/v1/leases", { key })).toMatchObject({
    status: 409,
    code: "kind-mismatch",
  });
  await sendRequest(url, "DELETE", `/v1/leases/${reader.leaseId}`);
  const pool = newKey();
  await acquire(url, { key: pool, mode: "semaphore", limit: 3, permits: 2 });
  const full = await refusal(url, "POST", "/v1/leases", {
    key: pool,
    mode: "semaphore",
    limit: 3,
    permits: 2,
  });
  expect(full.code).toBe("wait-timeout");
  const other = await refusal(url, "POST", "/v1/leases", { key: pool, mode: "semaphore", limit: 4 });
  expect(other).toMatchObject({ status: 409, code: "limit-mismatch" });
  expect((await sendRequest(url, "POST", "/v1/lock/limit", { key: pool, limit: 4 })).status).toBe(200);
  await acquire(url, { key: pool, mode: "semaphore", limit: 4, permits: 2 });
});

test("a repeated attempt gets the same lease while that is held, and a new lease afterwards", async () => {
  const key = newKey();
  const one = await acquire(url, { key, attemptId: "a-1" });
  const again = await acquire(url, { key, attemptId: "a-1" });
  expect([again.fencingToken, again.leaseId]).toEqual([one.fencingToken, one.leaseId]);
  expect(await refusal(url, "POST", "/v1/leases", { key, attemptId: "a-2" })).toMatchObject({
    code: "wait-timeout",
  });
  await sendRequest(url, "DELETE", `/v1/leases/${one.leaseId}`);
  const anew = await acquire(url, { key, attemptId: "a-1" });
  expect(BigInt(anew.fencingToken)).toBeGreaterThan(BigInt(one.fencingToken));
});

test("waiting repeats get the lease of the first request, each within its own `waitMs`", async () => {
  const key = newKey();
  const held = await acquire(url, { key });
  const waits = [1, 2].map(() => acquire(url, { key, attemptId: "a-1", waitMs: 20_000 }));
  const impatient = await refusal(url, "POST", "/v1/leases", { key, attemptId: "a-1", waitMs: 30 });
  expect(impatient).toMatchObject({ code: "wait-timeout" });
  await sendRequest(url, "DELETE", `/v1/leases/${held.leaseId}`);
  const [one, two] = await Promise.all(waits);
  expect(two?.leaseId).toBe(one?.leaseId);
});

test("a stream reports the wait, then the grant", async () => {
  const key = newKey();
  const first = await acquire(url, { key });
  const stream = await openStream(url, "POST", "/v1/leases", { key, waitMs: 20_000, owner: "streamer" });
  expect(await stream.next()).toMatchObject({ event: "waiting", data: { keys: [key] } });
  await sendRequest(url, "DELETE", `/v1/leases/${first.leaseId}`);
  const granted = await stream.next();
  expect(granted).toMatchObject({ event: "granted", data: { key, ttlMs: 30_000 } });
  expect(await stream.next()).toBeUndefined();
  expect(await sendRequest(url, "GET", `/v1/leases/${String(granted?.data["leaseId"])}`)).toMatchObject({
    status: 200,
  });
  const refused = await openStream(url, "POST", "/v1/leases", { key, waitMs: 30 });
  expect(await refused.next()).toMatchObject({ event: "waiting" });
  expect(await refused.next()).toMatchObject({
    event: "problem",
    data: { code: "wait-timeout", status: 423 },
  });
});

test("a lock that is held by a connection is renewed while it is open, and released when it closes", async () => {
  const key = newKey();
  const stream = await openStream(url, "POST", "/v1/leases?hold=connection", { key, ttlMs: 300 });
  const granted = await stream.next();
  expect(granted).toMatchObject({ event: "granted", data: { key } });
  expect(JSON.stringify(granted)).not.toContain("leaseId");
  const waiting = acquire(url, { key, waitMs: 1_000 });
  await expect(waiting).rejects.toThrow(/423/); // three times its TTL
  stream.disconnect();
  await acquire(url, { key, waitMs: 20_000 });
});

test("a broken lock of a connection is reported as lost", async () => {
  const key = newKey();
  const stream = await openStream(url, "POST", "/v1/leases?hold=connection", { key });
  const granted = await stream.next();
  await sendRequest(url, "POST", "/v1/lock/break", {
    key,
    fencingToken: granted?.data["fencingToken"],
    reason: "test",
  });
  expect(await stream.next()).toMatchObject({
    event: "lost",
    data: { code: "lease-lost", reason: "broken" },
  });
  expect(await stream.next()).toBeUndefined();
});
