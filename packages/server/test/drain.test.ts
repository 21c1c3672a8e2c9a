import { expect, test } from "vitest";
import { startRedis, waitUntil } from "@holdfast/test-kit";

import { createService } from "../src/index.ts";
import { acquire, sendRequest, inspect, openStream, refusal } from "./support/service.ts";

test("a draining service ends every stream with an event, refuses new requests, and keeps held locks", async () => {
  const redis = await startRedis();
  const engine = `redis://127.0.0.1:${redis.port}`;
  const [leaving, staying] = [await createService({ engine }), await createService({ engine })];
  const [url, other] = [await leaving.listen({ port: 0 }), await staying.listen({ port: 0 })];

  const { leaseId } = await acquire(url, { key: "held", ttlMs: 60_000 });
  const events = await openStream(url, "GET", "/v1/events?key=held");
  expect(await events.next()).toMatchObject({ event: "snapshot" });
  const wait = await openStream(url, "POST", "/v1/leases", { key: "held", waitMs: 60_000 });
  expect(await wait.next()).toMatchObject({ event: "waiting" });
  const answer = sendRequest(url, "POST", "/v1/leases", { key: "held", waitMs: 60_000 });
  await waitUntil(async () => (await inspect(other, "held")).waiterCount === 2, "two wait");
  const holding = await openStream(url, "POST", "/v1/leases?hold=connection", {
    key: "by connection",
    ttlMs: 30_000,
  });
  expect(await holding.next()).toMatchObject({ event: "granted" });

  const drained = leaving.drain();
  expect(await wait.next()).toMatchObject({ event: "problem", data: { code: "draining", retryable: true } });
  expect(await answer).toMatchObject({ status: 503, body: { code: "draining" } });
  expect(await events.next()).toMatchObject({ event: "draining" });
  const response = await holding.next();
  expect(response).toMatchObject({ event: "draining" });
  expect(Number(response?.data["validMs"])).toBeGreaterThan(10_000);
  for (const stream of [wait, events, holding]) {
    expect(await stream.next()).toBeUndefined();
  }
  await drained;

  expect((await inspect(other, "held")).waiterCount).toBe(0);
  // The holder by a connection may still be working, so its lock is left to expire.
  expect((await inspect(other, "by connection")).holders).toHaveLength(1);
  expect(await refusal(url, "POST", "/v1/leases", { key: "new" })).toMatchObject({
    status: 503,
    code: "draining",
  });
  expect((await sendRequest(url, "GET", "/readyz")).status).toBe(503);
  expect((await sendRequest(url, "GET", "/healthz")).status).toBe(200);
  expect((await sendRequest(url, "POST", `/v1/leases/${leaseId}/renew`, {})).status).toBe(200);
  expect(await sendRequest(url, "DELETE", `/v1/leases/${leaseId}`)).toMatchObject({
    body: { released: true },
  });

  await Promise.all([leaving.close(), staying.close()]);
  await redis.stop();
});
