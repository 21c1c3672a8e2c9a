import { setTimeout as pause } from "node:timers/promises";

import { afterAll, beforeAll, expect, test } from "vitest";
import { createLocks } from "holdfast";
import { http, leaseIdOf, type WireLease } from "holdfast/http";
import { startRedis, type RedisServer } from "@holdfast/test-kit";

import { createService, type Service } from "../src/index.ts";
import { acquire, sendRequest, refusal } from "./support/service.ts";

const leaseKey = "a key of all instances";

let redis: RedisServer;
const services: Service[] = [];

beforeAll(async () => {
  redis = await startRedis();
});

afterAll(async () => {
  await Promise.all(services.map((service) => service.close()));
  await redis.stop();
});

async function start(options: { leaseKey?: string; requestsPerSecond?: number }): Promise<string> {
  const service = await createService({ engine: `redis://127.0.0.1:${redis.port}`, ...options });
  services.push(service);
  return service.listen({ port: 0 });
}

const madeUp = (count: number, series = 0): string =>
  leaseIdOf({
    ttlMs: 60_000,
    grants: Array.from({ length: count }, (_, i) => ({
      key: `k${i}`,
      token: `t${series}-${i}`,
      fencingToken: "1",
    })),
  });

async function scriptsRun(): Promise<number> {
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.client().info("commandstats"))?.[1] ?? 0);
}

test("a signed lease is renewed and released by another instance with the same key, also by the driver", async () => {
  const [a, b] = [await start({ leaseKey }), await start({ leaseKey })];
  const { leaseId } = await acquire(a, { keys: ["signed:1", "signed:2"] });
  expect((await sendRequest(b, "POST", `/v1/leases/${leaseId}/renew`, {})).status).toBe(200);
  expect((await sendRequest(b, "GET", `/v1/leases/${leaseId}`)).status).toBe(200);
  expect(await sendRequest(b, "DELETE", `/v1/leases/${leaseId}`)).toMatchObject({ body: { released: true } });
  const [first, second] = [createLocks(http(a)), createLocks(http(b))];
  const lease = await first.acquire("signed:3");
  const adopted = await second.adopt(lease.transfer());
  await adopted.extend();
  expect(await adopted.release()).toBe(true);
  await Promise.all([first.close(), second.close()]);
});

test("a forged or altered lease id is refused without a request to the engine", async () => {
  const url = await start({ leaseKey });
  const { leaseId } = await acquire(url, { key: "forged", ttlMs: 60_000 });
  const [version, secret = "", signature, keys] = leaseId.split(".");
  const longer = Buffer.from(secret, "base64url").toString().replace("60000", "86400000");
  const other = Buffer.from('["another"]').toString("base64url");
  const before = await scriptsRun();
  for (const forged of [
    madeUp(1),
    [version, secret, keys].join("."),
    [version, Buffer.from(longer).toString("base64url"), signature, keys].join("."),
    [version, secret, signature, other].join("."),
    [version, secret, `${signature}A`, keys].join("."),
  ]) {
    expect(await refusal(url, "POST", `/v1/leases/${forged}/renew`, {})).toMatchObject({ code: "not-found" });
    expect(await refusal(url, "DELETE", `/v1/leases/${forged}`)).toMatchObject({ code: "not-found" });
  }
  expect((await scriptsRun()) - before).toBeLessThan(5); // ten requests; the service itself greets the server now and then
  expect((await sendRequest(url, "GET", `/v1/leases/${leaseId}`)).status).toBe(200);
});

test("the keys of an unsigned lease id are limited, and so are the keys of one renewal request", async () => {
  const url = await start({});
  const before = await scriptsRun();
  expect(await refusal(url, "GET", `/v1/leases/${madeUp(65)}`)).toMatchObject({
    code: "invalid",
    status: 400,
  });
  expect((await scriptsRun()) - before).toBeLessThan(5); // ten requests; the service itself greets the server now and then
  const leases = Array.from({ length: 20 }, (_, index) => ({ leaseId: madeUp(64, index) }));
  const response = (await sendRequest(url, "POST", "/v1/renew", { leases })).body as {
    leases: { code: string }[];
  };
  const codes = response.leases.map(({ code }) => code);
  expect(codes.filter((code) => code === "invalid").length).toBe(5); // 15 of them have 960 keys
});

test("requests with bad lease ids count in the rate limit, those with good ones do not", async () => {
  const url = await start({ leaseKey, requestsPerSecond: 5 });
  const { leaseId } = await acquire(url, { key: "rated", ttlMs: 5_000 });
  const bad = Array.from({ length: 30 }, () => sendRequest(url, "DELETE", `/v1/leases/${madeUp(1)}`));
  const statuses = (await Promise.all(bad)).map(({ status }) => status);
  expect(statuses).toContain(429);
  const leases = Array.from({ length: 30 }, (_, index) => ({ leaseId: madeUp(1, index) }));
  const many = (await sendRequest(url, "POST", "/v1/renew", { leases })).body as {
    leases: { code: string }[];
  };
  expect(many.leases.map(({ code }) => code)).toContain("rate-limited");
  let isOver = false;
  const flood = (async () => {
    while (!isOver) {
      await sendRequest(url, "DELETE", `/v1/leases/${madeUp(1)}`);
    }
  })();
  await pause(600); // a renewal sooner after the grant would be in vain, too
  const renewed = await sendRequest(url, "POST", `/v1/leases/${leaseId}/renew`, {});
  expect(renewed.status).toBe(200);
  expect((renewed.body as WireLease).key).toBe("rated");
  expect((await sendRequest(url, "DELETE", `/v1/leases/${leaseId}`)).status).toBe(200);
  isOver = true;
  await flood;
});
