import { once } from "node:events";
import { createServer, request, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtemp, rename, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import { startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";
import { leaseIdOf, readLeaseId, type WireLease, type WireProblem } from "holdfast/http";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterAll, afterEach, assert, beforeAll, describe, expect, test } from "vitest";

import {
  createService,
  followAuthFile,
  newToken,
  type AuthOptions,
  type LogEntry,
  type ServiceOptions,
} from "../src/index.ts";
import { sendRequest, startInstance, type ServiceInstance } from "./support/service.ts";

const [ci, other] = [newToken(), newToken()];
const auth: AuthOptions = { tokens: [entry("ci", ci, "job:"), entry("other", other, "job:")] };

function entry(
  name: string,
  { sha256 }: { sha256: string },
  prefix: string,
): NonNullable<AuthOptions["tokens"]>[number] {
  return {
    name,
    sha256,
    grants: [
      { scope: "lock:acquire", prefix },
      { scope: "lock:read", prefix },
    ],
  };
}

const as = ({ token }: { token: string }): Record<string, string> => ({ authorization: `Bearer ${token}` });

const ends: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) {
    await end();
  }
});

interface Opened {
  readonly url: string;
  readonly log: readonly LogEntry[];
  readonly service: Awaited<ReturnType<typeof createService>>;
}

async function open(options: ServiceOptions = {}): Promise<Opened> {
  const log: LogEntry[] = [];
  const service = await createService({ auth, drainMs: 0, log: (line) => log.push(line), ...options });
  ends.push(() => service.close());
  return { url: await service.listen({ port: 0 }), log, service };
}

async function acquired(url: string, who: { token: string }, body: object): Promise<WireLease> {
  const { status, body: lease } = await sendRequest(url, "POST", "/v1/leases", body, as(who));
  expect(status, JSON.stringify(lease)).toBe(201);
  return lease as WireLease;
}

async function problemOf(url: string, who: { token: string }, body: object): Promise<WireProblem> {
  return (await sendRequest(url, "POST", "/v1/leases", body, as(who))).body as WireProblem;
}

/** A stream or a wait of a token, as text that grows. */
async function opened(
  url: string,
  who: { token: string },
  path: string,
  body?: object,
): Promise<{ text: () => string; ended: Promise<unknown> }> {
  const response = await fetch(new URL(path, url), {
    method: body ? "POST" : "GET",
    headers: { accept: "text/event-stream", "content-type": "application/json", ...as(who) },
    ...(body && { body: JSON.stringify(body) }),
  });
  let text = "";
  const read = async (): Promise<void> => {
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk as Uint8Array).toString();
    }
  };
  return { text: () => text, ended: read().catch(() => undefined) };
}

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

describe("a change of the tokens", () => {
  const reading: AuthOptions = { tokens: [entry("other", other, "job:")] };

  test("ends the streams and waits of a token that is no longer there, and no others", async () => {
    const { url, service } = await open();
    await acquired(url, other, { key: "job:1" });
    const mine = await Promise.all([
      opened(url, ci, "/v1/events?prefix=job:"),
      opened(url, ci, "/v1/leases", { key: "job:1", waitMs: 60_000 }),
      opened(url, ci, "/v1/leases?hold=connection", { key: "job:2" }),
    ]);
    const theirs = await opened(url, other, "/v1/events?prefix=job:");
    await waitUntil(
      () => mine.every(({ text }) => text() !== "") && theirs.text() !== "",
      "the streams have begun",
    );
    expect(service.replaceAuth(reading)).toBe(3);
    await Promise.all(mine.map(({ ended }) => ended));
    for (const { text } of mine) {
      expect(text()).toMatch(/event: problem\ndata: .*revoked.*"code":"unauthenticated"/);
    }
    expect((await sendRequest(url, "GET", "/v1/me", undefined, as(ci))).status).toBe(401);
    expect((await sendRequest(url, "GET", "/v1/me", undefined, as(other))).status).toBe(200);
    const held = await sendRequest(url, "GET", "/v1/lock?key=job:2", undefined, as(other));
    expect(held.body).toMatchObject({ holders: [{}] }); // its client may still work, so that it is left to expire
    await acquired(url, other, { key: "job:3" });
    expect(theirs.text()).not.toContain("problem");
  });

  test("ends those of a token with other grants, and refuses invalid tokens", async () => {
    const { url, service } = await open();
    const stream = await opened(url, ci, "/v1/events?prefix=job:");
    expect(() => service.replaceAuth({ tokens: [] })).toThrow(/expected at least one token/);
    expect(service.replaceAuth(auth)).toBe(0);
    expect(service.replaceAuth({ tokens: [entry("ci", ci, "other:"), ...(reading.tokens ?? [])] })).toBe(1);
    await stream.ended;
    expect((await sendRequest(url, "GET", "/v1/locks?prefix=job:", undefined, as(ci))).status).toBe(403);
    const unauthenticated = await open({ auth: undefined });
    expect(() => unauthenticated.service.replaceAuth(auth)).toThrow(/with authentication/);
  });

  test("ends a request whose body was not complete", async () => {
    const { url, service } = await open();
    const text = JSON.stringify({ key: "job:1" });
    const begun = ["/v1/leases", "/v1/leases?hold=connection"].map((path) => {
      const headers = { "content-type": "application/json", "content-length": text.length, ...as(ci) };
      const outgoing = request(new URL(path, url), { method: "POST", agent: false, headers });
      outgoing.write(text.slice(0, 3));
      return outgoing;
    });
    await pause(200);
    service.replaceAuth(reading);
    const statuses = begun.map(async (outgoing) => {
      outgoing.end(text.slice(3));
      const [response] = (await once(outgoing, "response")) as [IncomingMessage];
      outgoing.destroy();
      return response.statusCode;
    });
    expect(await Promise.all(statuses)).toEqual([401, 401]);
  });

  describe("in the file", () => {
    let folder: string;
    let file: string;
    let instance: ServiceInstance | undefined;

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), "holdfast-doors-"));
      file = join(folder, "auth.json");
    });

    afterEach(async () => {
      await instance?.kill("SIGKILL");
      instance = undefined;
    });

    afterAll(() => rm(folder, { recursive: true, force: true }));

    async function replaceFile(text: string): Promise<void> {
      await writeFile(`${file}.new`, text);
      await rename(`${file}.new`, file);
    }

    test("is read again, also on SIGHUP, and one with an error changes nothing", async () => {
      await replaceFile(JSON.stringify(auth));
      const running = await startInstance({ HOLDFAST_AUTH_FILE: file });
      instance = running;
      const statusOf = async (who: { token: string }): Promise<number> =>
        (await sendRequest(running.url, "GET", "/v1/me", undefined, as(who))).status;
      expect([await statusOf(ci), await statusOf(other)]).toEqual([200, 200]);
      await replaceFile('{"tokens": [');
      await waitUntil(() => running.logged().includes("auth-not-reloaded"), "the error is in the log");
      expect([await statusOf(ci), await statusOf(other)]).toEqual([200, 200]);
      await replaceFile(JSON.stringify(reading));
      await waitUntil(async () => (await statusOf(ci)) === 401, "the token is revoked");
      expect(await statusOf(other)).toBe(200);
      await writeFile(file, JSON.stringify(auth));
      running.child.kill("SIGHUP");
      await waitUntil(async () => (await statusOf(ci)) === 200, "the token is back");
      expect(running.logged()).not.toContain(ci.token);
      expect(running.logged()).not.toContain(ci.sha256);
    });
  });

  test("is followed whatever the time of the file is, and by each service", async () => {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-doors-"));
    ends.push(() => rm(folder, { recursive: true, force: true }));
    const file = join(folder, "auth.json");
    const replaceToken = async (token: { sha256: string }): Promise<void> => {
      await writeFile(file, JSON.stringify({ tokens: [entry("ci", token, "job:")] }));
      await utimes(file, 0, 0);
    };
    await replaceToken(other);
    const [one, two] = [await open(), await open()];
    ends.push(followAuthFile(one.service, file));
    const end = followAuthFile(two.service, file);
    const statusOf = async (who: { token: string }): Promise<number> =>
      (await sendRequest(one.url, "GET", "/v1/me", undefined, as(who))).status;
    expect([await statusOf(ci), await statusOf(other)]).toEqual([401, 200]); // it had changed before
    await pause(200); // the file is watched now
    end();
    await replaceToken(ci);
    await waitUntil(async () => (await statusOf(other)) === 401, "the token is revoked");
  });

  test("with two signing keys, lease ids of both are valid, and no others", async () => {
    const redis = await startRedis();
    ends.push(() => redis.stop());
    const engine = `redis://127.0.0.1:${redis.port}`;
    const [former, next] = ["a former key of 16+", "the next key of 16+"];
    const before = await open({ engine, leaseKey: former });
    const first = await acquired(before.url, ci, { key: "job:1", ttlMs: 60_000 });
    const prepared = await open({ engine, leaseKey: former, oldLeaseKey: next });
    const changed = await open({ engine, leaseKey: next, oldLeaseKey: former });
    const second = await acquired(changed.url, ci, { key: "job:2", ttlMs: 60_000 });
    const renew = async (url: string, { leaseId }: WireLease): Promise<number> =>
      (await sendRequest(url, "POST", `/v1/leases/${leaseId}/renew`, {}, as(ci))).status;
    for (const { url } of [prepared, changed]) {
      expect([await renew(url, first), await renew(url, second)]).toEqual([200, 200]);
    }
    expect(await renew(before.url, second)).toBe(404);
    await expect(createService({ oldLeaseKey: next })).rejects.toThrow(/HOLDFAST_LEASE_KEY_OLD/);
  });
});

describe("issuers of signed tokens", () => {
  const audience = "holdfast";
  const servers: Server[] = [];

  afterAll(() => {
    for (const server of servers) {
      server.close().closeAllConnections();
    }
  });

  /** An issuer with its key server. @param replies false: the server never replies */
  async function issuerOf(
    name: string,
    replies = true,
  ): Promise<{
    settings: NonNullable<AuthOptions["jwt"]>[number];
    token: (sub: string) => Promise<{ token: string }>;
    asked: () => number;
  }> {
    const { privateKey, publicKey } = await generateKeyPair("ES256");
    const jwk = { ...(await exportJWK(publicKey)), kid: "one", alg: "ES256" };
    let asked = 0;
    const server = createServer((_, response) => {
      asked += 1;
      if (replies) {
        response.end(JSON.stringify({ keys: [jwk] }));
      }
    }).listen(0, "127.0.0.1");
    servers.push(server);
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    return {
      settings: {
        issuer: name,
        audience,
        jwksUrl: `http://127.0.0.1:${port}/`,
        rules: [{ subject: "repo:acme/", grants: [{ scope: "lock:acquire", prefix: "job:" }] }],
      },
      token: async (sub) => ({
        token: await new SignJWT({})
          .setProtectedHeader({ alg: "ES256", kid: "one" })
          .setIssuer(name)
          .setSubject(sub)
          .setAudience(audience)
          .setExpirationTime("5m")
          .sign(privateKey),
      }),
      asked: () => asked,
    };
  }

  test("an outage of one refuses no token of another, and a token is checked by the issuer that it names", async () => {
    const [hangs, works] = [await issuerOf("https://a.example", false), await issuerOf("https://b.example")];
    const { url } = await open({ auth: { jwt: [hangs.settings, works.settings] } });
    const begun = performance.now();
    await acquired(url, await works.token("repo:acme/shop"), { key: "job:1" });
    expect(hangs.asked()).toBe(0);
    for (const token of ["a.b.c", "...", `${(await hangs.token("x")).token.split(".")[0]}.e30.x`]) {
      expect((await sendRequest(url, "GET", "/v1/me", undefined, as({ token }))).status).toBe(401);
    }
    expect(hangs.asked()).toBe(0);
    expect(performance.now() - begun).toBeLessThan(4_000); // the request to an issuer that hangs ends after 5 s
    const fromOther = await sendRequest(
      url,
      "GET",
      "/v1/me",
      undefined,
      as(await hangs.token("repo:acme/x")),
    );
    expect(fromOther).toMatchObject({
      status: 401,
      body: { detail: expect.stringMatching(/unavailable/) as string },
    });
  });

  test("of one name with different audiences are apart", async () => {
    const [hangs, works] = [await issuerOf("https://e.example", false), await issuerOf("https://e.example")];
    const { url } = await open({
      auth: { jwt: [{ ...hangs.settings, audience: "another" }, works.settings] },
    });
    await acquired(url, await works.token("repo:acme/shop"), { key: "job:1" });
    expect(hangs.asked()).toBe(0);
  });

  test("a rule that takes the grants of one subject ends its streams", async () => {
    const { settings, token } = await issuerOf("https://d.example");
    const { url, service } = await open({ auth: { jwt: [settings] } });
    const [mine, theirs] = [await token("repo:acme/shop"), await token("repo:acme/other")];
    await acquired(url, theirs, { key: "job:1" });
    const streams = await Promise.all(
      [mine, theirs].map((who) => opened(url, who, "/v1/leases", { key: "job:1", waitMs: 30_000 })),
    );
    await waitUntil(() => streams.every(({ text }) => text().includes("waiting")), "both wait");
    const rules = [{ subject: "repo:acme/shop", grants: [] }, ...settings.rules];
    expect(service.replaceAuth({ jwt: [{ ...settings, rules }] })).toBe(1);
    await streams[0]?.ended;
    expect(streams[0]?.text()).toContain("revoked");
    expect(service.replaceAuth({ jwt: [{ ...settings, jwksUrl: `${settings.jwksUrl}new`, rules }] })).toBe(1);
  });

  test("all subjects of one rule share the limits", async () => {
    const issuer = await issuerOf("https://c.example");
    const { url } = await open({ auth: { jwt: [issuer.settings] }, maxLeasesOfOne: 2 });
    for (const branch of ["one", "two"]) {
      await acquired(url, await issuer.token(`repo:acme/${branch}`), { key: `job:${branch}` });
    }
    expect(await problemOf(url, await issuer.token("repo:acme/three"), { key: "job:three" })).toMatchObject({
      code: "rate-limited",
      detail: expect.stringContaining("https://c.example#repo:acme/") as string,
    });
  });
});

describe("the start", () => {
  test("beyond loopback needs an engine, if only a declared one", async () => {
    const implicit = await createService({ auth });
    ends.push(() => implicit.close());
    await expect(implicit.listen({ host: "0.0.0.0", port: 0 })).rejects.toThrow(/HOLDFAST_URL.*memory:/);
    const explicit = await createService({ auth, engine: "memory:" });
    ends.push(() => explicit.close());
    expect(await explicit.listen({ host: "0.0.0.0", port: 0 })).toMatch(/^http/);
  });

  test("warns of unsigned lease ids with several principals, also in the findings", async () => {
    const admin = newToken();
    const tokens = [
      ...(auth.tokens ?? []),
      { name: "admin", sha256: admin.sha256, grants: [{ scope: "admin" as const, prefix: "" }] },
    ];
    const { url, log } = await open({ auth: { tokens } });
    expect(log).toContainEqual(expect.objectContaining({ level: "warn", event: "unsigned-lease-ids" }));
    const { body } = await sendRequest(url, "GET", "/v1/doctor", undefined, as(admin));
    expect(body).toMatchObject({
      findings: expect.arrayContaining([expect.objectContaining({ id: "unsigned-lease-ids" })]) as unknown,
    });
    const signed = await open({ auth: { tokens }, leaseKey: "0123456789abcdef" });
    const one = await open({ auth: { tokens: tokens.slice(2) } });
    expect([...signed.log, ...one.log].filter(({ level }) => level === "warn")).toEqual([]);
    one.service.replaceAuth({ tokens });
    expect(one.log.filter(({ event }) => event === "unsigned-lease-ids")).toHaveLength(1);
    const later = await sendRequest(one.url, "GET", "/v1/doctor", undefined, as(admin));
    expect(JSON.stringify(later.body)).toContain("unsigned-lease-ids");
  });
});

test("refusals of tokens, scopes and limits leave one line of the log for each client, without secrets", async () => {
  const { url, log } = await open({ requestsPerSecond: 20 });
  const { leaseId } = await acquired(url, ci, { key: "job:1" });
  const wrong = newToken();
  const ask = async (): Promise<void> => {
    await sendRequest(url, "GET", "/v1/me", undefined, as(wrong));
    await sendRequest(url, "GET", "/v1/locks?prefix=x", undefined, as(ci));
  };
  await ask();
  await Promise.all(Array.from({ length: 100 }, ask));
  const warnings = log.filter(({ level, event }) => level === "warn" && event === "refused");
  expect(warnings.map(({ code, principal }) => [code, principal])).toEqual([
    ["unauthenticated", undefined],
    ["forbidden", "ci"],
    ["rate-limited", "ci"],
  ]);
  expect(log.filter(({ level, event }) => level === "debug" && event === "refused").length).toBeGreaterThan(
    50,
  );
  for (const secret of [wrong.token, ci.token, leaseId]) {
    expect(JSON.stringify(log)).not.toContain(secret);
  }
});

test("refusals of a client with many addresses leave a limited number of lines", async () => {
  const { url, log } = await open();
  for (let number = 1; number <= 150; number += 1) {
    const localAddress = `127.0.1.${number}`;
    const outgoing = request(new URL("/v1/me", url), { agent: false, localAddress });
    outgoing.end();
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    expect(response.resume().statusCode).toBe(401);
  }
  await sendRequest(url, "GET", "/v1/locks?prefix=x", undefined, as(ci));
  const lines = log.filter(({ level, event }) => level === "warn" && event === "refused");
  expect(lines).toHaveLength(101);
  expect(lines.at(-1)).toMatchObject({ code: "forbidden", principal: "ci" });
});

test("refusals in streams and in renewals of many leases leave a line of the log too", async () => {
  const { url, log } = await open({ maxWaitsOfKey: 1, maxLeasesOfOne: 1, requestsPerSecond: 100 });
  const refused = (code: string, principal: string): unknown =>
    log.find((line) => line.level === "warn" && line["code"] === code && line["principal"] === principal);
  const { leaseId } = await acquired(url, other, { key: "job:1" });
  const body = { key: "job:1", waitMs: 500 };
  const streams = await Promise.all([1, 2].map(() => opened(url, ci, "/v1/leases", body)));
  await Promise.all(streams.map(({ ended }) => ended));
  expect(refused("too-many-waiters", "ci")).toBeDefined();
  await (
    await opened(url, other, "/v1/leases?hold=connection", { key: "job:2" })
  ).ended;
  expect(refused("rate-limited", "other")).toBeDefined();
  const parts = readLeaseId(leaseId);
  assert(parts);
  const foreign = leaseIdOf({
    ...parts,
    grants: parts.grants.map((grant) => ({ ...grant, key: "other:1" })),
  });
  await sendRequest(url, "POST", "/v1/renew", { leases: [{ leaseId: foreign }] }, as(ci));
  expect(refused("forbidden", "ci")).toMatchObject({ route: "/v1/renew" });
});

test("without authentication neither a proxy nor a page of another origin has access", async () => {
  const { url } = await open({ auth: undefined, allowedOrigins: ["https://shop.example"] });
  const statusOf = async (headers: Record<string, string>): Promise<number> =>
    (await sendRequest(url, "GET", "/v1/locks", undefined, headers)).status;
  expect(await statusOf({ "x-forwarded-for": "203.0.113.7" })).toBe(403);
  expect(await statusOf({ via: "1.1 proxy" })).toBe(403);
  expect(await statusOf({ "sec-fetch-site": "cross-site" })).toBe(403);
  expect(await statusOf({ origin: "https://evil.example" })).toBe(403);
  expect(await statusOf({ "sec-fetch-site": "cross-site", origin: "https://shop.example" })).toBe(200);
  expect(await statusOf({ "sec-fetch-site": "same-origin", origin: url })).toBe(200);
});
