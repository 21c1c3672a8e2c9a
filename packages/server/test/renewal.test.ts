import { redis as holdfastRedis } from "holdfast/redis";
import { faultyClient, manualClock } from "holdfast/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";

import { createService, type Service } from "../src/index.ts";
import { acquire, sendRequest, inspect, refusal } from "./support/service.ts";

let redis: RedisServer;
let services: Service[];
const urls: Record<string, string> = {};

beforeAll(async () => {
  redis = await startRedis();
  const engines = { redis: `redis://127.0.0.1:${redis.port}`, memory: "memory://" };
  services = await Promise.all(Object.values(engines).map((engine) => createService({ engine })));
  for (const [index, name] of Object.keys(engines).entries()) {
    urls[name] = (await services[index]?.listen({ port: 0 })) ?? "";
  }
});

afterAll(async () => {
  await Promise.all(services.map((service) => service.close()));
  await redis.stop();
});

test("a lease is not renewed after another holder, although a late request has acquired its token again", async () => {
  const clock = manualClock(); // of what is late alone
  const { connection, controls } = faultyClient(redis.client(), { clock });
  const late = await createService({ engine: holdfastRedis(connection) });
  const url = await late.listen({ port: 0 });
  let acquires = 0;
  controls.duplicate(({ args }) => args.includes("acquire") && ++acquires === 1, 1_000);
  const lease = await acquire(url, { key: "late", ttlMs: 300 });
  await waitUntil(async () => (await inspect(url, "late")).holders.length === 0, "it is over");
  const other = await acquire(url, { key: "late" });
  expect((await sendRequest(url, "DELETE", `/v1/leases/${other.leaseId}`)).status).toBe(200);
  const arrived = waitUntil(
    async () => (await redis.client().exists("lock:late")) === 1,
    "it is acquired anew",
  );
  await clock.advance(1_000);
  await arrived;
  const renewed = await refusal(url, "POST", `/v1/leases/${lease.leaseId}/renew`, { ttlMs: 30_000 });
  expect(renewed).toMatchObject({ status: 410, code: "lease-lost" });
  expect(await redis.client().pttl("lock:late")).toBeLessThanOrEqual(300);
  await late.close();
});

test.each(["redis", "memory"])(
  "on %s a renewal with another TTL keeps what its holder said of itself",
  async (engine) => {
    const url = urls[engine] ?? "";
    const key = "said";
    const said = { owner: "billing", reason: "charge" };
    const lease = await acquire(url, { key, ttlMs: 1_000, ...said });
    const renewed = await sendRequest(url, "POST", `/v1/leases/${lease.leaseId}/renew`, { ttlMs: 60_000 });
    await sendRequest(url, "POST", `/v1/leases/${lease.leaseId}/renew`, {}); // its first id has its first TTL
    expect((await inspect(url, key)).remainingMs).toBeGreaterThan(30_000);
    if (engine === "redis") {
      const direct = redis.client();
      expect(await direct.pttl(`holdfast:info:{lock:${key}}`)).toBeGreaterThan(30_000);
    }
    expect((await inspect(url, key)).holders).toMatchObject([said]);
    const { leaseId } = renewed.body as { leaseId: string };
    expect(leaseId).not.toBe(lease.leaseId);
    expect(await sendRequest(url, "DELETE", `/v1/leases/${leaseId}`)).toMatchObject({
      body: { released: true },
    });
  },
);

test.each(["redis", "memory"])("a renewal after the release names the release, on %s", async (engine) => {
  const url = urls[engine] as string;
  const { leaseId } = await acquire(url, { key: "released" });
  expect((await sendRequest(url, "DELETE", `/v1/leases/${leaseId}`)).body).toEqual({ released: true });
  expect(await refusal(url, "POST", `/v1/leases/${leaseId}/renew`, {})).toMatchObject({
    code: "lease-lost",
    reason: "released",
  });
  expect((await sendRequest(url, "DELETE", `/v1/leases/${leaseId}`)).body).toEqual({ released: false });
});
