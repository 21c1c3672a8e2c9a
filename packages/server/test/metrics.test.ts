import { afterEach, beforeEach, expect, test } from "vitest";
import { block, startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";

import { createService, type Service } from "../src/index.ts";
import { acquire, openStream, sendRequest } from "./support/service.ts";

let redis: RedisServer;
let service: Service;
let url: string;

beforeEach(async () => {
  redis = await startRedis();
  service = await createService({ engine: `redis://127.0.0.1:${redis.port}?commandTimeoutMs=500` });
  url = await service.listen({ port: 0 });
});

afterEach(async () => {
  await service.close();
  await redis.stop();
});

/** The value of the metric with these labels; undefined if there is none. */
async function metric(name: string, ...labels: readonly string[]): Promise<number | undefined> {
  const text = String((await sendRequest(url, "GET", "/metrics")).body);
  const line = text
    .split("\n")
    .find((one) => one.startsWith(`${name}{`) && labels.every((label) => one.includes(label)));
  return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(" ")));
}

test("restarts of a server and the library's events about it are counted", async () => {
  const node = `server_address="127.0.0.1:${redis.port}/0"`;
  await waitUntil(async () => (await metric("holdfast_node_restarts_total", node)) === 0, "it is known");
  redis.kill("SIGKILL");
  const failures = async (): Promise<number> =>
    (await metric("holdfast_server_node_events_total", 'event="connection-failed"')) ?? 0;
  await waitUntil(async () => (await failures()) > 0, "it is missed");
  await redis.restart();
  await waitUntil(async () => (await metric("holdfast_node_restarts_total", node)) === 1, "it is seen");
  expect(await metric("holdfast_node_uptime_seconds", node)).toBeLessThan(60);
});

test("the overrun of a lock held by a connection is measured", async () => {
  const path = "/v1/leases?hold=connection";
  const stream = await openStream(url, "POST", path, { key: "job:1", ttlMs: 300 });
  expect(await stream.next()).toMatchObject({ event: "granted" });
  block(900); // the service is in this process
  expect(await stream.next()).toMatchObject({ event: "lost" });
  expect(await metric("holdfast_overrun_duration_seconds_count", 'group="job"')).toBe(1);
  expect(await metric("holdfast_overrun_duration_seconds_sum", 'group="job"')).toBeGreaterThan(0.5);
});

test("held leases have the kind of their lock, also at an instance that only renews them", async () => {
  const other = await createService({ engine: `redis://127.0.0.1:${redis.port}` });
  const otherUrl = await other.listen({ port: 0 });
  const held = await acquire(url, { key: "held:1" });
  for (const body of [
    { key: "held:2", mode: "write" },
    { key: "held:3", mode: "semaphore", limit: 2 },
    { keys: ["held:4", "held:5"], mode: "read" },
  ]) {
    const { leaseId } = await acquire(otherUrl, body);
    expect((await sendRequest(url, "POST", `/v1/leases/${leaseId}/renew`, {})).status).toBe(200);
    expect((await sendRequest(url, "GET", `/v1/leases/${leaseId}`)).status).toBe(200);
  }
  const counts = ["mutex", "read-write", "semaphore"].map((kind) =>
    metric("holdfast_held", 'group="held"', `kind="${kind}"`),
  );
  expect(await Promise.all(counts)).toEqual([1, 3, 1]);
  await sendRequest(url, "DELETE", `/v1/leases/${held.leaseId}`);
  expect(await metric("holdfast_held", 'group="held"', 'kind="mutex"')).toBe(0);
  await other.close();
});

test("a break by another instance ends a lease as broken, also at an instance that only renews or releases it", async () => {
  const other = await createService({ engine: `redis://127.0.0.1:${redis.port}` });
  const otherUrl = await other.listen({ port: 0 });
  for (const key of ["renewed:1", "deleted:1"]) {
    const { leaseId, fencingToken } = await acquire(otherUrl, { key });
    const path = `/v1/leases/${leaseId}`;
    await sendRequest(url, "POST", `${path}/renew`, {});
    const seen = { key, fencingToken, reason: "test" };
    expect((await sendRequest(otherUrl, "POST", "/v1/lock/break", seen)).status).toBe(200);
    await (key === "renewed:1"
      ? sendRequest(url, "POST", `${path}/renew`, {})
      : sendRequest(url, "DELETE", path));
    const group = `group="${key.slice(0, -2)}"`;
    expect(await metric("holdfast_lost_total", group, 'reason="broken"')).toBe(1);
    expect(await metric("holdfast_hold_duration_seconds_count", group, 'end="broken"')).toBe(1);
  }
  await other.close();
});

test("the loss of a lease has the reason that its client gets", async () => {
  const { leaseId } = await acquire(url, { key: "missing:1" });
  const client = redis.client();
  await client.del("lock:missing:1");
  const { status, body } = await sendRequest(url, "POST", `/v1/leases/${leaseId}/renew`, {});
  expect([status, body]).toEqual([410, expect.objectContaining({ code: "lease-lost", reason: "expired" })]);
  const group = 'group="missing"';
  expect(await metric("holdfast_lost_total", group, 'reason="expired"')).toBe(1);
  expect(await metric("holdfast_lost_total", group, 'reason="stolen"')).toBeUndefined();
  expect(await metric("holdfast_hold_duration_seconds_count", group, 'end="expired"')).toBe(1);
});

test("the duration of each request is measured by its method, route and status, and never by its path", async () => {
  const { leaseId } = await acquire(url, { key: "timed:1" });
  await sendRequest(url, "DELETE", `/v1/leases/${leaseId}`);
  await sendRequest(url, "DELETE", "/v1/leases/forged");
  await sendRequest(url, "GET", "/v1/lock?key=timed:1");
  await sendRequest(url, "GET", "/v1/no-such-path");
  await sendRequest(url, "GET", "/v1/lock?unknown=1");
  const stream = await openStream(url, "GET", "/v1/events?key=timed:1");
  await stream.next();
  stream.disconnect();
  const duration = (...labels: readonly string[]): Promise<number | undefined> =>
    metric("http_server_request_duration_seconds_count", 'url_scheme="http"', ...labels);
  const route = (path: string): string => `http_route="${path}"`;
  const status = (code: number): string => `http_response_status_code="${code}"`;
  await waitUntil(async () => (await duration(route("/v1/events"))) === 1, "the stream has ended");
  expect(await duration(route("/v1/leases"), 'http_request_method="POST"', status(201))).toBe(1);
  expect(await duration(route("/v1/leases/{leaseId}"), 'http_request_method="DELETE"', status(200))).toBe(1);
  expect(await duration(route("/v1/leases/{leaseId}"), status(404))).toBe(1);
  expect(await duration(route("/v1/lock"), status(200))).toBe(1);
  expect(await duration(route("/v1/lock"), status(400))).toBe(1);
  redis.kill("SIGKILL");
  await sendRequest(url, "GET", "/v1/lock?key=timed:1");
  expect(await duration(route("/v1/lock"), 'error_type="engine-unavailable"')).toBe(1);
  const text = String((await sendRequest(url, "GET", "/metrics")).body);
  expect(text).toMatch(/duration_seconds_count\{[^}]*http_response_status_code="404",url_scheme="http"\} 1/);
  for (const secret of [leaseId, "no-such-path", "timed:1"]) {
    expect(text).not.toContain(secret);
  }
});
