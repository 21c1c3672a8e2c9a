import { afterEach, beforeEach, expect, test } from "vitest";
import { block, startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";

import { createService, type Service } from "../src/index.ts";
import { sendRequest, openStream } from "./support/service.ts";

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
