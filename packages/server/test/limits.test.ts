import { expect, test } from "vitest";
import { createLocks } from "holdfast";
import { http, type WireLease, type WireProblem } from "holdfast/http";
import { manualClock } from "holdfast/testing";
import { waitUntil } from "@holdfast/test-kit";

import { createService, type LogEntry } from "../src/index.ts";
import { inspect, openStream, refusal, sendRequest } from "./support/service.ts";

test("a principal over its rate limit gets a retry delay, but can renew and release", async () => {
  const small = await createService({ requestsPerSecond: 5, maxWaitsOfOne: 2 });
  const at = await small.listen({ port: 0 });
  const lease = (await sendRequest(at, "POST", "/v1/leases", { key: "k" })).body as WireLease;
  const answers = [];
  for (let turn = 0; turn < 20; turn += 1) {
    answers.push(await sendRequest(at, "GET", "/v1/locks"));
  }
  const refused = answers.find((answer) => answer.status === 429);
  expect(refused?.body).toMatchObject({ code: "rate-limited", retryable: true, outcome: "none" });
  expect(Number(refused?.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await sendRequest(at, "POST", `/v1/leases/${lease.leaseId}/renew`, {})).status).toBe(200);
  expect((await sendRequest(at, "DELETE", `/v1/leases/${lease.leaseId}`)).status).toBe(200);
  await small.close();
});

test("a principal with too many open waits is refused another, and other principals are not", async () => {
  const small = await createService({ maxWaitsOfOne: 2 });
  const at = await small.listen({ port: 0 });
  await sendRequest(at, "POST", "/v1/leases", { key: "k" });
  const waits = [1, 2].map(() => sendRequest(at, "POST", "/v1/leases", { key: "k", waitMs: 30_000 }));
  await waitUntil(async () => (await inspect(at, "k")).waiterCount === 2, "two wait");
  const problem: WireProblem = await refusal(at, "POST", "/v1/leases", { key: "k", waitMs: 1_000 });
  expect(problem).toMatchObject({ status: 429, code: "too-many-waiters", retryable: true });
  expect(await refusal(at, "POST", "/v1/leases", { key: "k" })).toMatchObject({ code: "wait-timeout" });
  await small.close();
  expect((await Promise.all(waits)).map(({ status: code }) => code)).toEqual([503, 503]);
});

test("a principal with too many open event streams is refused another, until one ends", async () => {
  const small = await createService({ maxStreamsOfOne: 1 });
  const at = await small.listen({ port: 0 });
  const stream = await openStream(at, "GET", "/v1/events?key=k");
  expect(await refusal(at, "GET", "/v1/events")).toMatchObject({ status: 429, code: "too-many-waiters" });
  stream.disconnect();
  await waitUntil(async () => {
    const next = await openStream(at, "GET", "/v1/events?key=k");
    next.disconnect();
    return next.status === 200;
  }, "another stream is accepted");
  await small.close();
});

test("a client that is refused an event stream asks again after seconds, and not at once", async () => {
  let refusals = 0;
  const log = ({ event }: LogEntry): void => void (refusals += event === "refused" ? 1 : 0);
  const small = await createService({ maxStreamsOfOne: 1, log });
  const at = await small.listen({ port: 0 });
  const stream = await openStream(at, "GET", "/v1/events?key=k");
  const clock = manualClock();
  const locks = createLocks(http(at, { clock }));
  const first = locks.admin.watch("k")[Symbol.asyncIterator]().next();
  for (let turn = 1; turn <= 2; turn += 1) {
    await waitUntil(() => refusals === turn, "the service has refused the stream");
    let waitedMs = 0;
    while (refusals === turn && waitedMs < 60_000) {
      await clock.advance(1_000);
      waitedMs += 1_000;
      await inspect(at, "k"); // gives the client time to read the replies
    }
    expect(waitedMs).toBeGreaterThanOrEqual(5_000);
    expect(refusals).toBe(turn + 1);
  }
  stream.disconnect();
  await locks.close();
  expect((await first).done).toBe(true);
  await small.close();
});
