import { afterAll, beforeAll, expect, test } from "vitest";
import { readLeaseId, type WireLease } from "holdfast/http";
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
  const told = await sendRequest(url, "POST", "/v1/leases", { key, waitMs: 50 });
  expect(told).toMatchObject({ status: 423, body: { code: "wait-timeout" } });
  expect(told.headers.get("content-type")).toBe("application/problem+json");
  expect(Number(told.headers.get("retry-after"))).toBeGreaterThan(0);
});

test("who waits for the answer has the lock, whole, when it is released", async () => {
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

test("a look at a lease never extends it", async () => {
  const key = newKey();
  const lease = await acquire(url, { key, ttlMs: 600 });
  const seen: number[] = [];
  await waitUntil(async () => {
    const { status, body } = await sendRequest(url, "GET", `/v1/leases/${lease.leaseId}`);
    seen.push(status === 200 ? (body as WireLease).validMs : 0);
    return status === 410;
  }, "it expires though it is looked at all the time");
  expect(seen).toEqual(seen.toSorted((a, b) => b - a));
});

test("a lease that is over is told so: renewed and looked at 410, released false", async () => {
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

test("many leases are renewed by one request, each with an answer of its own", async () => {
  const [one, gone] = [await acquire(url, { key: newKey() }), await acquire(url, { key: newKey() })];
  await sendRequest(url, "DELETE", `/v1/leases/${gone.leaseId}`);
  const { status, body } = await sendRequest(url, "POST", "/v1/renew", {
    leases: [{ leaseId: one.leaseId, ttlMs: 40_000 }, { leaseId: gone.leaseId }, { leaseId: "nonsense" }],
  });
  expect(status).toBe(200);
  expect(body).toMatchObject({
    leases: [{ leaseId: expect.any(String), ttlMs: 40_000 }, { code: "lease-lost" }, { code: "not-found" }],
  });
});

test("several keys are one lease: every one of them or none", async () => {
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

test("an attempt that is repeated has the same lease while that is held, and another one behind it", async () => {
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

test("repeats that wait have the lease of the first, each in its own time", async () => {
  const key = newKey();
  const held = await acquire(url, { key });
  const waits = [1, 2].map(() => acquire(url, { key, attemptId: "a-1", waitMs: 20_000 }));
  const impatient = await refusal(url, "POST", "/v1/leases", { key, attemptId: "a-1", waitMs: 30 });
  expect(impatient).toMatchObject({ code: "wait-timeout" });
  await sendRequest(url, "DELETE", `/v1/leases/${held.leaseId}`);
  const [one, two] = await Promise.all(waits);
  expect(two?.leaseId).toBe(one?.leaseId);
});

test("who waits as a stream is told of the wait, then of the grant", async () => {
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

test("a lock that is held by a connection and broken is told as lost", async () => {
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

test("what is not understood is refused, and says what is wrong", async () => {
  const key = newKey();
  const bad: [string, string, unknown, RegExp][] = [
    ["POST", "/v1/leases?hold=connection", { key, attemptId: "a" }, /no name/],
    ["POST", "/v1/leases?hold=on", { key }, /hold/],
    ["POST", "/v1/leases", {}, /either `key` or `keys`/],
    ["POST", "/v1/leases", { key, keys: [key] }, /either `key` or `keys`/],
    ["POST", "/v1/leases", { key: "" }, /key/],
    ["POST", "/v1/leases", { key: "ä".repeat(300) }, /512 bytes/],
    ["POST", "/v1/leases", { key: "\ud800" }, /well-formed/],
    ["POST", "/v1/leases", { key, ttlMs: 10 }, /ttlMs/],
    ["POST", "/v1/leases", { key, ttlMS: 1_000 }, /ttlMS/],
    ["POST", "/v1/leases", { key, mode: "semaphore" }, /`limit`/],
    ["POST", "/v1/leases", { key, mode: "semaphore", limit: 0 }, /limit/],
    ["POST", "/v1/leases", { key, labels: { a: "x".repeat(300) } }, /labels/],
    ["POST", "/v1/lock/break", { key, fencingToken: "seven", reason: "x" }, /fencingToken/],
    ["GET", "/v1/locks?limit=0", undefined, /limit/],
    ["GET", "/v1/events?key=a&prefix=b", undefined, /both/],
  ];
  for (const [method, path, body, told] of bad) {
    const problem = await refusal(url, method, path, body);
    expect(problem, `${path} ${JSON.stringify(body)}`).toMatchObject({
      status: 400,
      code: "invalid",
      outcome: "none",
      retryable: false,
    });
    expect(problem.detail).toMatch(told);
  }
  expect(await refusal(url, "GET", "/v1/nothing")).toMatchObject({ status: 404, code: "not-found" });
});

test("a made-up lease id gets nowhere", async () => {
  const key = newKey();
  const { leaseId } = await acquire(url, { key });
  const [, secret] = leaseId.split(".") as [string, string, string];
  const made = (value: unknown, keys: unknown): string =>
    `1.${Buffer.from(JSON.stringify(value)).toString("base64url")}.${Buffer.from(JSON.stringify(keys)).toString("base64url")}`;
  for (const id of [
    "x",
    "1..",
    `2.${secret}.x`,
    made([], []),
    made([1000, ["a b", "1"]], [key]),
    made([1000, ["a", "-1"]], [key]),
  ]) {
    expect(await refusal(url, "DELETE", `/v1/leases/${encodeURIComponent(id)}`), id).toMatchObject({
      code: "not-found",
    });
  }
  const guessed = made([1_000, ["0".repeat(32), "1"]], [key]);
  expect(await refusal(url, "POST", `/v1/leases/${guessed}/renew`, {})).toMatchObject({ code: "lease-lost" });
  expect(await sendRequest(url, "DELETE", `/v1/leases/${guessed}`)).toMatchObject({
    body: { released: false },
  });
  const noKey = made([1_000, ["0".repeat(32), "1"]], ["x".repeat(600)]);
  expect(await refusal(url, "POST", `/v1/leases/${noKey}/renew`, {})).toMatchObject({ code: "invalid" });
  expect((await inspect(url, key)).holders).toHaveLength(1);
  expect(readLeaseId(leaseId)?.grants[0]?.key).toBe(key);
});
