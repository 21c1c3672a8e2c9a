import { setTimeout as pause } from "node:timers/promises";

import { startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";
import { leaseIdOf, readLeaseId, type WireLease, type WireProblem } from "holdfast/http";
import { afterAll, assert, beforeAll, describe, expect, test } from "vitest";

import { newToken } from "../src/index.ts";
import {
  acquired,
  as,
  entry,
  auth,
  ci,
  ends,
  open,
  opened,
  other,
  problemOf,
} from "./support/limited-service.ts";
import { sendRequest } from "./support/service.ts";

describe("renewals in vain", () => {
  let redis: RedisServer;
  let engine: string;

  beforeAll(async () => {
    redis = await startRedis();
    engine = `redis://127.0.0.1:${redis.port}`;
  });

  afterAll(() => redis.stop());

  test("one lease id that a request names 1 000 times is renewed once", async () => {
    const { url } = await open({ engine });
    const { leaseId } = await acquired(url, ci, { key: "job:1" });
    const leases = Array.from({ length: 1_000 }, () => ({ leaseId }));
    const { body } = await sendRequest(url, "POST", "/v1/renew", { leases }, as(ci));
    const results = (body as { leases: WireLease[] }).leases;
    expect(results).toHaveLength(1_000);
    expect(new Set(results.map(({ expiresAt, validMs }) => `${expiresAt} ${validMs}`)).size).toBe(1);
  });

  test("renewals that no lease needs are limited, and those of a client are not", async () => {
    const { url } = await open({ engine, requestsPerSecond: 5 });
    const { leaseId } = await acquired(url, ci, { key: "job:2", ttlMs: 60_000 });
    const others = await acquired(url, other, { key: "job:3", ttlMs: 60_000 });
    const renew = async (): Promise<string | undefined> => {
      const { body } = await sendRequest(url, "POST", "/v1/renew", { leases: [{ leaseId }] }, as(ci));
      return (body as { leases: { code?: string }[] }).leases[0]?.code;
    };
    const codes = await Promise.all(Array.from({ length: 60 }, renew));
    expect(codes.filter((code) => code === "rate-limited").length).toBeGreaterThan(5);
    const renewed = await sendRequest(url, "POST", `/v1/leases/${others.leaseId}/renew`, {}, as(other));
    expect(renewed.status).toBe(200);
  });

  test("leases with a short TTL can be renewed after a third of it", async () => {
    const { url } = await open({ requestsPerSecond: 5 });
    const leases = await Promise.all(
      [1, 2, 3, 4].map((number) => acquired(url, ci, { key: `job:${number}`, ttlMs: 1_200 })),
    );
    for (let turn = 0; turn < 5; turn += 1) {
      await pause(400);
      const { body } = await sendRequest(url, "POST", "/v1/renew", { leases: leases.map(({ leaseId }) => ({ leaseId })) }, as(ci)); // prettier-ignore
      const codes = (body as { leases: WireProblem[] }).leases.map(({ code }) => code);
      if (codes.includes("lease-lost")) {
        break; // a machine that stalls loses them
      }
      expect(codes).not.toContain("rate-limited");
    }
  });

  test("a request for the state of a lease is no renewal of it", async () => {
    const { url } = await open({ requestsPerSecond: 6 });
    const { leaseId } = await acquired(url, ci, { key: "job:5", ttlMs: 5_000 });
    await pause(600);
    const path = `/v1/leases/${leaseId}`;
    expect((await sendRequest(url, "GET", path, undefined, as(ci))).status).toBe(200);
    for (let turn = 0; turn < 6; turn += 1) {
      await sendRequest(url, "DELETE", "/v1/leases/none", undefined, as(ci)); // in vain
    }
    expect((await sendRequest(url, "POST", `${path}/renew`, {}, as(ci))).status).toBe(200);
  });

  test("early renewals of one request are limited too", async () => {
    const { url } = await open({ engine, requestsPerSecond: 5 });
    const { leaseId } = await acquired(url, ci, { key: "job:6", ttlMs: 60_000 });
    const parts = readLeaseId(leaseId);
    assert(parts);
    const leases = Array.from({ length: 100 }, (_, more) => ({
      leaseId: leaseIdOf({ ...parts, ttlMs: 60_000 + more }),
    }));
    const { body } = await sendRequest(url, "POST", "/v1/renew", { leases }, as(ci));
    const results = (body as { leases: { code?: string }[] }).leases;
    expect(results.filter(({ code }) => code === "rate-limited")).toHaveLength(95);
  });

  test("releases and renewals of leases that have ended are limited", async () => {
    const { url } = await open({ engine, requestsPerSecond: 5 });
    const { leaseId } = await acquired(url, ci, { key: "job:4" });
    const release = async (): Promise<number> =>
      (await sendRequest(url, "DELETE", `/v1/leases/${leaseId}`, undefined, as(ci))).status;
    expect(await release()).toBe(200);
    expect(await Promise.all(Array.from({ length: 60 }, release))).toContain(429);
    await waitUntil(async () => (await release()) === 200, "the limit is of each second");
  });
});

describe("limits of one principal", () => {
  test("waits for a key, held keys and waits are limited, and /v1/me says so", async () => {
    const { url } = await open({
      maxWaitsOfKey: 2,
      maxLeasesOfOne: 3,
      maxWaitsOfOne: 4,
      requestsPerSecond: 100,
    });
    const me = await sendRequest(url, "GET", "/v1/me", undefined, as(ci));
    expect(me.body).toMatchObject({
      limits: { waits: 4, waitsOfKey: 2, leases: 3, streams: 200, requestsPerSecond: 100 },
    });
    const leases = [
      await acquired(url, ci, { keys: ["job:1", "job:2"] }),
      await acquired(url, ci, { key: "job:3" }),
    ];
    expect(await problemOf(url, ci, { key: "job:4" })).toMatchObject({
      status: 429,
      code: "rate-limited",
      detail: '"ci" has 3 held keys by this instance, and the limit is 3',
    });
    const lease = await acquired(url, other, { key: "job:4" });
    await sendRequest(url, "DELETE", `/v1/leases/${leases[1]?.leaseId}`, undefined, as(ci));
    const waits = [1, 2].map(() => opened(url, ci, "/v1/leases", { key: "job:4", waitMs: 30_000 }));
    const streams = await Promise.all(waits);
    await waitUntil(() => streams.every(({ text }) => text().includes("waiting")), "both wait");
    expect(await problemOf(url, ci, { key: "job:4", waitMs: 1_000 })).toMatchObject({
      code: "too-many-waiters",
      key: "job:4",
      retryable: true,
    });
    await sendRequest(url, "DELETE", `/v1/leases/${lease.leaseId}`, undefined, as(other));
    await waitUntil(() => streams.some(({ text }) => text().includes("granted")), "one has the lock");
  });

  test("a wait that ends beyond the limit is one result of the metrics", async () => {
    const admin = newToken();
    const reader = { ...entry("admin", admin, ""), grants: [{ scope: "admin" as const, prefix: "" }] };
    const { url } = await open({ auth: { tokens: [...(auth.tokens ?? []), reader] }, maxLeasesOfOne: 1 });
    const { leaseId } = await acquired(url, other, { key: "job:1" });
    const wait = problemOf(url, ci, { key: "job:1", waitMs: 30_000 });
    const metrics = async (): Promise<string> =>
      (await sendRequest(url, "GET", "/metrics", undefined, as(admin))).body as string;
    await waitUntil(async () => /^holdfast_waiting{.*} 1$/m.test(await metrics()), "it waits");
    await acquired(url, ci, { key: "job:2" });
    await sendRequest(url, "DELETE", `/v1/leases/${leaseId}`, undefined, as(other));
    expect(await wait).toMatchObject({ code: "rate-limited" });
    expect(await metrics()).toMatch(/^holdfast_waiting{.*} 0$/m);
  });

  test("each key of a lease counts until it ends itself", async () => {
    const { url } = await open({ maxLeasesOfOne: 4 });
    const { leaseId } = await acquired(url, ci, { keys: ["job:1", "job:2", "job:3", "job:4"] });
    const parts = readLeaseId(leaseId);
    assert(parts);
    const first = leaseIdOf({ ...parts, grants: parts.grants.slice(0, 1) });
    await sendRequest(url, "DELETE", `/v1/leases/${first}`, undefined, as(ci));
    await acquired(url, ci, { key: "job:5" });
    expect(await problemOf(url, ci, { key: "job:6" })).toMatchObject({ code: "rate-limited" });
  });

  test("a lease that another instance has released no longer counts", async () => {
    const redis = await startRedis();
    ends.push(() => redis.stop());
    const engine = `redis://127.0.0.1:${redis.port}`;
    const admin = newToken();
    const reader = { ...entry("admin", admin, ""), grants: [{ scope: "admin" as const, prefix: "" }] };
    const options = { engine, auth: { tokens: [...(auth.tokens ?? []), reader] } };
    const [one, two] = [await open({ ...options, maxLeasesOfOne: 2 }), await open(options)];
    await acquired(one.url, ci, { key: "job:0", ttlMs: 3_600_000 });
    for (let number = 1; number < 5; number += 1) {
      const { leaseId } = await acquired(one.url, ci, { key: `job:${number}`, ttlMs: 3_600_000 });
      await sendRequest(two.url, "DELETE", `/v1/leases/${leaseId}`, undefined, as(ci));
    }
    await acquired(one.url, ci, { key: "job:5" });
    expect(await problemOf(one.url, ci, { key: "job:6" })).toMatchObject({ code: "rate-limited" });
    const { body } = await sendRequest(one.url, "GET", "/metrics", undefined, as(admin));
    expect(body).toMatch(/^holdfast_held{.*} 2$/m);
  });

  test("a lease counts at the instance that renews it", async () => {
    const redis = await startRedis();
    ends.push(() => redis.stop());
    const engine = `redis://127.0.0.1:${redis.port}`;
    const [one, two] = [await open({ engine }), await open({ engine, maxLeasesOfOne: 1 })];
    const leases = [
      await acquired(one.url, ci, { key: "job:1" }),
      await acquired(one.url, ci, { key: "job:2" }),
    ];
    for (const { leaseId } of leases) {
      const renewal = await sendRequest(two.url, "POST", `/v1/leases/${leaseId}/renew`, {}, as(ci));
      expect(renewal.status).toBe(200);
    }
    expect(await problemOf(two.url, ci, { key: "job:3" })).toMatchObject({ code: "rate-limited" });
    for (const { leaseId } of leases) {
      await sendRequest(two.url, "DELETE", `/v1/leases/${leaseId}`, undefined, as(ci));
    }
    await acquired(two.url, ci, { key: "job:3" });
  });

  test.each(["memory:", "redis"])(
    "a lease counts once, whatever the lease ids of others say: %s",
    async (name) => {
      const redis = name === "redis" ? await startRedis() : undefined;
      ends.push(() => redis?.stop());
      const { url } = await open({
        maxLeasesOfOne: 1,
        engine: redis ? `redis://127.0.0.1:${redis.port}` : name,
      });
      const parts = readLeaseId((await acquired(url, ci, { key: "job:1" })).leaseId);
      const [grant] = parts?.grants ?? [];
      assert(parts && grant);
      for (let number = 1; number <= 70; number += 1) {
        const altered = number === 1 ? { key: "job:2" } : { fencingToken: `${number}` };
        const leaseId = leaseIdOf({ ...parts, grants: [{ ...grant, ...altered }] });
        await sendRequest(url, "POST", `/v1/leases/${leaseId}/renew`, {}, as(ci));
      }
      expect(await problemOf(url, ci, { key: "job:2" })).toMatchObject({
        detail: '"ci" has 1 held keys by this instance, and the limit is 1',
      });
    },
  );

  test("a lease that ends by its TTL no longer counts", async () => {
    const { url } = await open({ maxLeasesOfOne: 1 });
    await acquired(url, ci, { key: "job:1", ttlMs: 2_000 });
    expect(await problemOf(url, ci, { key: "job:2" })).toMatchObject({ code: "rate-limited" });
    await waitUntil(async () => {
      const { status } = await sendRequest(url, "POST", "/v1/leases", { key: "job:2" }, as(ci));
      return status === 201;
    }, "the lease has ended");
  });

  test("a lock that is held by its connection counts until the connection ends", async () => {
    const { url } = await open({ maxLeasesOfOne: 1 });
    const abort = new AbortController();
    const held = await fetch(new URL("/v1/leases?hold=connection", url), {
      method: "POST",
      headers: { "content-type": "application/json", ...as(ci) },
      body: JSON.stringify({ key: "job:1" }),
      signal: abort.signal,
    });
    await held.body?.getReader().read();
    expect(await problemOf(url, ci, { key: "job:2" })).toMatchObject({ code: "rate-limited" });
    abort.abort();
    await waitUntil(async () => {
      const { status } = await sendRequest(url, "POST", "/v1/leases", { key: "job:2" }, as(ci));
      return status === 201;
    }, "the connection has ended");
  });

  test("without authentication all clients are one principal, without limits of their own", async () => {
    const { url } = await open({ auth: undefined, maxLeasesOfOne: 1, maxWaitsOfKey: 1 });
    for (const key of ["a", "b", "c"]) {
      expect((await sendRequest(url, "POST", "/v1/leases", { key })).status).toBe(201);
    }
    const me = await sendRequest(url, "GET", "/v1/me");
    expect(me.body).toMatchObject({ limits: { leases: null, waitsOfKey: null, waits: 20_000 } });
  });

  test("repeats of an attempt are waits too", async () => {
    const { url } = await open({ maxWaitsOfKey: 3 });
    await acquired(url, other, { key: "job:1" });
    const body = { key: "job:1", attemptId: "one", waitMs: 1_000 };
    const codes = await Promise.all([1, 2, 3, 4, 5].map(async () => (await problemOf(url, ci, body)).code));
    expect(codes.filter((code) => code === "too-many-waiters")).toHaveLength(2);
    expect(codes.filter((code) => code === "wait-timeout")).toHaveLength(3);
  });

  test("probes are not limited by the requests of others without a token", async () => {
    const { url } = await open({ requestsPerSecond: 2 });
    const statuses = [];
    for (const path of ["/console/", "/console/", "/console/", "/healthz", "/readyz"]) {
      statuses.push((await sendRequest(url, "GET", path)).status);
    }
    expect(statuses.slice(2)).toEqual([429, 200, 200]);
  });

  test("requests that only look like renewals and releases are limited", async () => {
    const { url } = await open({ requestsPerSecond: 1 });
    await sendRequest(url, "GET", "/v1/me", undefined, as(ci));
    for (const [method, path] of [
      ["GET", "/none/renew"],
      ["DELETE", "/v1/locks"],
    ] as const) {
      expect((await sendRequest(url, method, path, undefined, as(ci))).status).toBe(429);
    }
  });

  test("a repeat of an attempt after its release is a new request", async () => {
    const { url } = await open();
    const body = { key: "job:1", attemptId: "one", ttlMs: 86_400_000 };
    const first = await acquired(url, ci, body);
    expect((await acquired(url, ci, body)).fencingToken).toBe(first.fencingToken);
    await sendRequest(url, "DELETE", `/v1/leases/${first.leaseId}`, undefined, as(ci));
    const second = await acquired(url, ci, body);
    expect(BigInt(second.fencingToken)).toBeGreaterThan(BigInt(first.fencingToken));
  });
});
