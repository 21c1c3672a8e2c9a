import { createLocks } from "holdfast";
import { http } from "holdfast/http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";

import { clientConformance, wholeConformance } from "../../holdfast/test/support/conformance.ts";
import { createService, type Service } from "../src/index.ts";

describe("the HTTP driver, by a service on the embedded engine", () => {
  let service: Service;
  let url: string;

  beforeAll(async () => {
    service = await createService();
    url = await service.listen({ port: 0 });
  });

  afterAll(() => service.close());

  describe.concurrent("passes the conformance suite:", () => {
    wholeConformance({ test, open: async () => ({ driver: http(url), other: http(url) }) });
  });
});

describe("the HTTP driver, by two instances of the service on one Redis", () => {
  let server: RedisServer;
  let services: Service[];
  let urls: [string, string];

  beforeAll(async () => {
    server = await startRedis();
    const engine = `redis://127.0.0.1:${server.port}`;
    services = [await createService({ engine }), await createService({ engine })];
    urls = (await Promise.all(services.map((service) => service.listen({ port: 0 })))) as [string, string];
  });

  afterAll(async () => {
    await Promise.all(services.map((service) => service.close()));
    await server.stop();
  });

  describe.concurrent("passes the conformance suite:", () => {
    clientConformance({
      // The engine knows a waiter of the other instance only by that instance's name. The test below covers these waiters.
      test: (name, body) =>
        name.startsWith("inspect reports holder, reason") ? undefined : test(name, body),
      open: async () => ({ driver: http(urls[0]), other: http(urls[1]) }),
    });
  });

  test("inspect names the waiters of the same instance, and the other instance of other waiters", async () => {
    const [here, there] = [createLocks(http(urls[0])), createLocks(http(urls[1]))];
    const lease = await here.acquire("order:555", { owner: "first" });
    const waits = [here.acquire("order:555", { owner: "second" })];
    await waitUntil(async () => (await here.inspect("order:555")).waiterCount === 1, "the second waits");
    waits.push(there.acquire("order:555", { owner: "third" }));
    await waitUntil(async () => (await here.inspect("order:555")).waiterCount === 2, "the third waits");
    const state = await here.inspect("order:555");
    expect(state.holders).toMatchObject([{ owner: "first" }]);
    expect(state.waiters).toMatchObject([{ owner: "second" }, { owner: /^lock service@/ }].map(named));
    await lease.release();
    for (const wait of waits) {
      await (await wait).release();
    }
    await Promise.all([here.close(), there.close()]);
  });
});

function named({ owner }: { owner: string | RegExp }): object {
  return { owner: typeof owner === "string" ? owner : expect.stringMatching(owner) };
}
