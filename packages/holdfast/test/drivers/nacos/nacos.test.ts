import { limitMs } from "@holdfast/test-kit";
import { createLocks, type Locks } from "holdfast";
import { nacos, type NacosOptions } from "holdfast/nacos";
import { afterEach, describe, expect, test } from "vitest";

import {
  startNacos,
  type SimulatedServer,
  type Simulator,
  type SimulatorOptions,
} from "../../support/nacos-simulator/simulator.ts";

describe("the driver for Nacos", () => {
  let cluster: Simulator | undefined;
  let opened: Locks[] = [];

  afterEach(async () => {
    await Promise.all(opened.map((locks) => locks.close()));
    opened = [];
    await cluster?.stop();
    cluster = undefined;
  });

  async function start(options?: SimulatorOptions): Promise<SimulatedServer> {
    cluster = await startNacos(options);
    return cluster.servers[0] as SimulatedServer;
  }

  function open(server: SimulatedServer, options?: NacosOptions): Locks {
    const locks = createLocks(nacos(server.url, options));
    opened.push(locks);
    return locks;
  }

  test("refuses versions without a safe compare-and-set, and takes the version of an upgraded server", async () => {
    const server = await start({ version: "2.3.1" });
    const locks = open(server);
    await expect(locks.acquire("order")).rejects.toMatchObject({
      code: "unsupported",
      message: expect.stringContaining("2.3.1"),
    });
    server.version = "3.0.0";
    expect(await (await locks.acquire("order")).release()).toBe(true);
  });

  test.each(["2.5.1", "3.1.0"])(
    "logs in to Nacos %s, and logs in again when the token has expired",
    async (version) => {
      const server = await start({ version, users: { app: "secret!" } });
      const locks = open(server, { user: "app", password: "secret!" });
      const lease = await locks.acquire("order");
      server.tokens.clear();
      expect(await lease.release()).toBe(true);
      const logins = server.requests.filter((request) => request.endsWith("/login"));
      expect(logins).toHaveLength(2);
      await expect(open(server).acquire("order")).rejects.toMatchObject({
        code: "engine-unavailable",
        retryable: false,
      });
      const wrong = open(server, { user: "app", password: "wrong" });
      await expect(wrong.acquire("order")).rejects.toThrow(/^(?!.*wrong).*unknown user/);
    },
  );

  test("takes 1 request for each grant, extension and release of a known lock, and 4 for a new one", async () => {
    const server = await start();
    const locks = open(server);
    const first = await locks.acquire("order");
    expect(server.requests.slice(1).map((request) => request.split(" ")[0])).toEqual([
      "GET",
      "POST",
      "GET",
      "POST",
    ]);
    await first.release();
    server.requests.length = 0;
    const lease = await locks.acquire("order");
    await lease.extend();
    await lease.release();
    expect(server.requests).toEqual(Array.from({ length: 3 }, () => "POST /v3/admin/cs/config"));
    expect(cluster?.database.history).toBe(6);
  });

  test("waits and inspections write nothing but the queue entry", async () => {
    const server = await start();
    const [here, there] = [open(server), open(server)];
    const lease = await here.acquire("order");
    const written = cluster?.database.history ?? 0;
    const waiting = there.acquire("order");
    await expect.poll(async () => (await here.inspect("order")).waiterCount).toBe(1);
    server.requests.length = 0;
    await expect.poll(() => server.requests.length, { timeout: limitMs(30_000) }).toBeGreaterThan(10);
    expect(cluster?.database.history).toBe(written + 1);
    await lease.release();
    await (await waiting).release();
  });

  test("keeps locks whose keys differ in one character apart, also in long keys", async () => {
    const locks = open(await start());
    const long = "€".repeat(170);
    const keys = ["order", "Order", "order.", "order_", "order:", "orders", "%_*", `${long}a`, `${long}b`];
    const leases = await Promise.all(keys.map((key) => locks.acquire(key, { owner: "Jürgen 😀" })));
    const { locks: listed } = await locks.admin.list();
    expect(listed.map(({ key }) => key).sort()).toEqual(keys.toSorted());
    expect(listed.every(({ holders }) => holders[0]?.owner === "Jürgen 😀")).toBe(true);
    const found = await locks.admin.list({ prefix: `${long}b` });
    expect(found.locks.map(({ key }) => key)).toEqual([`${long}b`]);
    await Promise.all(leases.map((lease) => lease.release()));
  });

  test("refuses a configuration of another program, and lists the others", async () => {
    const server = await start();
    const locks = open(server);
    const place = { namespace: "holdfast", group: "holdfast", casMd5: "" };
    cluster?.database.publish({ ...place, dataId: "lock.order", content: "a: 1" }, false);
    await expect(locks.acquire("order")).rejects.toThrow(
      "another program has written the configuration lock.order",
    );
    await locks.acquire("other");
    expect((await locks.admin.list()).locks.map(({ key }) => key)).toEqual(["other"]);
  });

  test("fencing tokens rise after an operator has deleted the configuration", async () => {
    const server = await start();
    const locks = open(server, {});
    const first = await locks.acquire("order");
    await first.release();
    cluster?.database.delete("holdfast", "holdfast", "lock.order");
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    const second = await open(server).acquire("order");
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
  });

  test("a short-lived process gets the lock of a crashed one by the clock of the server", async () => {
    const server = await start();
    let isCrashed = false;
    const crashing: typeof fetch = (input, init) =>
      isCrashed ? Promise.reject(new TypeError("crashed")) : fetch(input, init);
    await open(server, { fetch: crashing, commandTimeoutMs: 100 }).acquire("order", {
      ttlMs: 500,
      renew: false,
    });
    isCrashed = true;
    const options = { maxClockDifferenceMs: 5_000 };
    server.clockOffsetMs = 3_000;
    expect(await open(server, options).tryAcquire("order")).toBeNull();
    server.clockOffsetMs = null;
    expect(await open(server, options).tryAcquire("order")).toBeNull();
    server.clockOffsetMs = 8_000;
    expect(await open(server, options).tryAcquire("order")).not.toBeNull();
  });
});

describe("nacos()", () => {
  test.each([
    [[], {}],
    [["127.0.0.1:8848"], {}],
    [["http://user@127.0.0.1:8848"], {}],
    [["http://127.0.0.1:8848/nacos"], {}],
    [["http://127.0.0.1:8848"], { namespace: "public" }],
    [["http://127.0.0.1:8848"], { namespace: "" }],
    [["http://127.0.0.1:8848"], { group: "a b" }],
    [["http://127.0.0.1:8848"], { contextPath: "nacos" }],
    [["http://127.0.0.1:8848"], { prefix: "app" } as NacosOptions],
  ])("refuses %o with %o", (servers, options) => {
    expect(() => nacos(servers, options)).toThrow(/Expected|Unknown/);
  });
});
