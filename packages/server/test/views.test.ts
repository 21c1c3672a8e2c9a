import { afterAll, beforeAll, expect, test } from "vitest";
import type { WireLock, WireLocks } from "holdfast/http";
import { startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";

import { createService, type Service } from "../src/index.ts";
import { acquire, sendRequest, openStream, refusal } from "./support/service.ts";

let redis: RedisServer;
let service: Service;
let url: string;

beforeAll(async () => {
  redis = await startRedis();
  service = await createService({
    engine: `redis://127.0.0.1:${redis.port}?commandTimeoutMs=500`,
    groups: ["eu:order:"],
  });
  url = await service.listen({ port: 0 });
});

afterAll(async () => {
  await service.close();
  await redis.stop();
});

test("locks are listed by prefix, owner and state, page by page", async () => {
  for (let i = 0; i < 5; i += 1) {
    await acquire(url, { key: `list:${i}`, owner: i % 2 === 0 ? "even" : "odd" });
  }
  await acquire(url, { key: "other:1", owner: "even" });
  const waiting = sendRequest(url, "POST", "/v1/leases", { key: "list:3", waitMs: 30_000 });
  const keysOf = async (query: string): Promise<string[]> => {
    const found: string[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const more: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const { body } = await sendRequest(url, "GET", `/v1/locks?limit=2&${query}${more}`);
      found.push(...(body as WireLocks).locks.map(({ key }) => key));
      ({ cursor } = body as WireLocks);
    }
    return found.sort();
  };
  expect(await keysOf("prefix=list:")).toEqual([0, 1, 2, 3, 4].map((i) => `list:${i}`));
  expect(await keysOf("prefix=list:&owner=even")).toEqual(["list:0", "list:2", "list:4"]);
  await waitUntil(async () => (await keysOf("state=contended")).join() === "list:3", "one is waited for");
  const { body } = await sendRequest(url, "GET", "/v1/lock?key=list:3");
  await sendRequest(url, "POST", "/v1/lock/break", {
    key: "list:3",
    fencingToken: (body as WireLock).fencingToken,
    reason: "test",
  });
  expect((await waiting).status).toBe(201);
});

test("a cursor that no page has returned is refused as invalid", async () => {
  for (const cursor of ["zzz", "-1", "18446744073709551616"]) {
    expect(await refusal(url, "GET", `/v1/locks?cursor=${cursor}`)).toMatchObject({
      status: 400,
      code: "invalid",
    });
  }
});

test("corrupt metadata of one holder does not make a list fail", async () => {
  await acquire(url, { key: "corrupt:1", owner: "a", labels: { job: "1" } });
  await acquire(url, { key: "corrupt:2", owner: "b", mode: "read" });
  const probe = redis.client();
  const infoOf = async (key: string): Promise<string> => {
    const [info = ""] = (await probe.keys(`*${key}*`)).filter((name) => name.includes(":info:"));
    return info;
  };
  const info = await infoOf("corrupt:1");
  const shared = await infoOf("corrupt:2");
  const [words = ""] = (await probe.hkeys(shared)).filter((field) => field.startsWith("w"));
  for (const labels of ["{broken", "null", "[]", '{"job":1}']) {
    await probe.hset(info, "labels", labels);
    await probe.hset(shared, words, labels);
    const { status, body } = await sendRequest(url, "GET", "/v1/locks?prefix=corrupt:");
    expect(status, labels).toBe(200);
    const holders = (body as WireLocks).locks.flatMap((lock) => lock.holders);
    expect(holders).toHaveLength(2);
    expect(holders.some(({ owner }) => owner === "a")).toBe(true);
    expect(holders.every((holder) => holder.labels === undefined)).toBe(true);
  }
});

test("the fencing token of the holder is current, and every other token is stale", async () => {
  const first = await acquire(url, { key: "fence" });
  const check = async (fencingToken: string): Promise<unknown> =>
    (await sendRequest(url, "POST", "/v1/fence/check", { key: "fence", fencingToken })).body;
  expect(await check(first.fencingToken)).toEqual({ fence: "current" });
  await sendRequest(url, "DELETE", `/v1/leases/${first.leaseId}`);
  expect(await check(first.fencingToken)).toEqual({ fence: "stale" });
  await acquire(url, { key: "fence" });
  expect(await check(first.fencingToken)).toEqual({ fence: "stale" });
  expect(await check(`9${first.fencingToken}`)).toEqual({ fence: "stale" });
});

test("events begin with a snapshot, also after a reconnect", async () => {
  const { leaseId } = await acquire(url, { key: "events:1" });
  const stream = await openStream(url, "GET", "/v1/events?prefix=events:");
  expect(await stream.next()).toMatchObject({ event: "snapshot", data: { key: "events:1" } });
  await acquire(url, { key: "events:2" });
  expect(await stream.next()).toMatchObject({ event: "changed", data: { key: "events:2" } });
  stream.disconnect();
  await sendRequest(url, "DELETE", `/v1/leases/${leaseId}`);
  const again = await openStream(url, "GET", "/v1/events?prefix=events:");
  expect(await again.next()).toMatchObject({ event: "snapshot", data: { key: "events:2" } });
  const { body } = await sendRequest(url, "GET", "/v1/lock?key=events:2");
  await sendRequest(url, "POST", "/v1/lock/break", {
    key: "events:2",
    fencingToken: (body as WireLock).fencingToken,
    reason: "test",
  });
  expect(await again.next()).toMatchObject({
    event: "gone",
    data: { key: "events:2", state: { holders: [] } },
  });
  again.disconnect();
});

test("metrics count acquisitions, waits, holds and losses, by group and never by key", async () => {
  const lease = await acquire(url, { key: "eu:order:7" });
  await refusal(url, "POST", "/v1/leases", { key: "eu:order:7", waitMs: 10 });
  await refusal(url, "POST", "/v1/leases", { key: "eu:order:7" });
  await sendRequest(url, "POST", `/v1/leases/${lease.leaseId}/renew`, {});
  await sendRequest(url, "DELETE", `/v1/leases/${lease.leaseId}`);
  const short = await acquire(url, { key: "eu:order:8", ttlMs: 100 });
  const metrics = async (): Promise<string> => String((await sendRequest(url, "GET", "/metrics")).body);
  await waitUntil(
    async () => /holdfast_lost_total\{.*reason="expired".*\} 1/.test(await metrics()),
    "one expires",
  );
  expect(short.keys).toEqual(["eu:order:8"]);
  const text = await metrics();
  const group = 'group="eu:order:"';
  const node = `server_address="127.0.0.1:${redis.port}/0"`;
  for (const line of [
    `holdfast_acquire_duration_seconds_count{${group},outcome="acquired"} 2`,
    `holdfast_acquire_duration_seconds_count{${group},outcome="wait_timeout"} 1`,
    `holdfast_acquire_duration_seconds_count{${group},outcome="held"} 1`,
    `holdfast_wait_duration_seconds_count{${group},outcome="wait_timeout"} 1`,
    `holdfast_grants_total{${group},kind="mutex",mode="exclusive",via="reply"} 2`,
    `holdfast_hold_duration_seconds_count{${group},end="released"} 1`,
    `holdfast_hold_duration_seconds_count{${group},end="expired"} 1`,
    `holdfast_renew_duration_seconds_count{${group},outcome="renewed"} 1`,
    `holdfast_renew_margin_count{${group}} 1`,
    `holdfast_releases_total{${group},outcome="released"} 1`,
    `holdfast_held{${group},kind="mutex"} 0`,
    `holdfast_waiting{${group},where="engine"} 0`,
    `holdfast_breaks_total{${group}} 0`,
    `holdfast_node_up{${node}} 1`,
    `holdfast_server_node_role{${node},role="master"} 1`,
    `holdfast_node_restarts_total{${node}} 0`,
    'holdfast_server_info{engine="redis",guarantee="server"} 1',
  ]) {
    const [name = "", labels = "", value = ""] = /^(\w+)\{(.*)\} (.+)$/.exec(line)?.slice(1) ?? [];
    const found = text
      .split("\n")
      .find(
        (one) =>
          one.startsWith(`${name}{`) &&
          labels.split(",").every((label) => one.includes(label)) &&
          one.endsWith(` ${value}`),
      );
    expect(
      found,
      `${line}\n${text
        .split("\n")
        .filter((one) => one.startsWith(name))
        .join("\n")}`,
    ).toBeDefined();
  }
  expect(text).toMatch(/holdfast_server_open_waits \d+/);
  expect(text).toMatch(/holdfast_timer_lag_seconds [\d.e-]+/);
  expect(text).not.toContain("order:7");
});

test("the OpenAPI document describes every path", async () => {
  const { body } = await sendRequest(url, "GET", "/openapi.json");
  const { openapi, paths, components } = body as {
    openapi: string;
    paths: object;
    components: { schemas: object };
  };
  expect(openapi).toBe("3.1.0");
  expect(Object.keys(paths).sort()).toEqual([
    "/healthz",
    "/metrics",
    "/readyz",
    "/v1/audit",
    "/v1/contention",
    "/v1/doctor",
    "/v1/events",
    "/v1/fence/check",
    "/v1/history",
    "/v1/hold-times",
    "/v1/leases",
    "/v1/leases/{leaseId}",
    "/v1/leases/{leaseId}/downgrade",
    "/v1/leases/{leaseId}/renew",
    "/v1/lock",
    "/v1/lock/break",
    "/v1/lock/limit",
    "/v1/locks",
    "/v1/me",
    "/v1/nodes",
    "/v1/owners",
    "/v1/owners/break",
    "/v1/processes",
    "/v1/renew",
  ]);
  expect(Object.keys(components.schemas)).toEqual(
    expect.arrayContaining(["Acquire", "Lease", "Lock", "Problem"]),
  );
});

test("an unresponsive engine is never reported as a free lock, and the service is not ready", async () => {
  expect(await sendRequest(url, "GET", "/readyz")).toMatchObject({ status: 200, body: { status: "ready" } });
  redis.freeze();
  try {
    const problem = await refusal(url, "POST", "/v1/leases", { key: "frozen" });
    expect(problem).toMatchObject({
      status: 504,
      code: "engine-unavailable",
      outcome: "unknown",
      retryable: true,
    });
    expect(await sendRequest(url, "GET", "/readyz")).toMatchObject({
      status: 503,
      body: { code: "engine-unavailable" },
    });
    expect((await sendRequest(url, "GET", "/healthz")).status).toBe(200);
  } finally {
    redis.thaw();
  }
  await waitUntil(async () => (await sendRequest(url, "GET", "/readyz")).status === 200, "it is ready again");
});
