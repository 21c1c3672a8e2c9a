import { limitMs } from "@holdfast/test-kit";
import { createLocks, type Lease, type Locks } from "holdfast";
import { nacos, type NacosOptions } from "holdfast/nacos";
import { manualClock } from "holdfast/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { resolveOptions } from "../../../src/drivers/nacos/options.ts";
import { NacosStore } from "../../../src/drivers/nacos/store.ts";
import { remainingAtLoss } from "../../support/loss.ts";
import { isPublication, publishes } from "../../support/nacos-simulator/faults.ts";
import { startNacos, type Simulator, type SimulatedServer } from "../../support/nacos-simulator/simulator.ts";

const isGrant = publishes(({ grant }) => grant !== null);
const isEnd = publishes(({ grant }) => grant === null);
const isEntry = publishes(({ queue }) => queue.length > 0);

describe.each([
  ["the external database of Nacos 3", { version: "3.1.0" }],
  ["the embedded database of Nacos 2", { version: "2.5.1", embedded: true }],
])("with %s,", (_, options) => {
  let cluster: Simulator;
  let server: SimulatedServer;
  let opened: Locks[] = [];

  beforeEach(async () => {
    cluster = await startNacos({ ...options, servers: 2 });
    server = cluster.servers[0] as SimulatedServer;
  });

  afterEach(async () => {
    for (const { faults } of cluster.servers) {
      faults.clear();
      faults.letGo();
    }
    server.thaw(); // a failed test may have left the server frozen
    await Promise.all(opened.map((locks) => locks.close()));
    opened = [];
    await cluster.stop();
  });

  /** Locks on the first server, on which the faults are. */
  function open(driverOptions?: NacosOptions): Locks {
    return opening(server.url, driverOptions);
  }

  /** Locks on the second server, which has no faults. It is a follower of the embedded database. */
  function openElsewhere(driverOptions?: NacosOptions): Locks {
    return opening(cluster.urls[1] as string, driverOptions);
  }

  function opening(servers: string | readonly string[], driverOptions?: NacosOptions): Locks {
    const locks = createLocks(nacos(servers, driverOptions));
    opened.push(locks);
    return locks;
  }

  async function queued(locks: Locks, key: string, count: number): Promise<void> {
    await expect
      .poll(async () => (await locks.inspect(key)).waiterCount, { timeout: limitMs(30_000) })
      .toBe(count);
  }

  test("a restart keeps the grant and the queue", async () => {
    const [here, there] = [open(), openElsewhere()];
    const lease = await here.acquire("order", { ttlMs: 60_000 });
    const next = there.acquire("order", { ttlMs: 60_000, waitMs: 60_000 });
    await queued(there, "order", 1);
    await server.stop();
    await expect(here.inspect("order")).rejects.toMatchObject({ code: "engine-unavailable" });
    await server.start();
    await expect.poll(() => extended(lease), { timeout: limitMs(30_000) }).toBe(true);
    expect(await open().tryAcquire("order")).toBeNull();
    expect(await lease.release()).toBe(true);
    const following = await next;
    expect(following.fencingToken).toBeGreaterThan(lease.fencingToken);
    expect(await following.release()).toBe(true);
  });

  test.each(["lost", "failed-late", "cut", "failed"] as const)(
    "a grant whose request is %s has one holder, and leaves no residue",
    async (fault) => {
      const here = open();
      await (await here.acquire("order")).release();
      const hit = server.faults.plan(fault, isGrant);
      const lease = await here.acquire("order", { ttlMs: 60_000, waitMs: 20_000 });
      await hit;
      expect(await openElsewhere().checkFence("order", lease.fencingToken)).toBe("current");
      expect(await openElsewhere().tryAcquire("order")).toBeNull();
      expect(await lease.release()).toBe(true);
      expect(await openElsewhere().tryAcquire("order")).not.toBeNull();
    },
  );

  test.each(["lost", "failed-late", "cut", "failed"] as const)(
    "a release whose request is %s is confirmed",
    async (fault) => {
      const lease = await open().acquire("order", { ttlMs: 60_000 });
      const hit = server.faults.plan(fault, isEnd);
      expect(await lease.release()).toBe(true);
      await hit;
      expect(await openElsewhere().tryAcquire("order")).not.toBeNull();
    },
  );

  test.each(["lost", "failed-late", "cut", "failed"] as const)(
    "a queue entry whose request is %s leaves no residue",
    async (fault) => {
      const [here, there] = [open(), openElsewhere()];
      const lease = await there.acquire("order", { ttlMs: 60_000 });
      const hit = server.faults.plan(fault, isEntry);
      const next = here.acquire("order", { waitMs: 60_000 });
      await hit;
      await queued(there, "order", 1);
      await lease.release();
      expect(await (await next).release()).toBe(true);
      await queued(there, "order", 0);
      expect(await there.tryAcquire("order")).not.toBeNull();
    },
  );

  test("an extension whose reply is lost keeps the lease", async () => {
    const lease = await open().acquire("order", { ttlMs: 60_000, renew: false });
    const hit = server.faults.plan("lost", isGrant);
    await expect(lease.extend(90_000)).rejects.toMatchObject({ code: "engine-unavailable", retryable: true });
    await hit;
    await lease.extend(30_000);
    expect(lease.remainingMs()).toBeGreaterThan(80_000);
    expect(await lease.release()).toBe(true);
  });

  test("a request that gets no reply leaves no grant until its TTL", async () => {
    const here = open({ commandTimeoutMs: 300 });
    void server.faults.plan("lost", isGrant, 1_000);
    await expect(here.tryAcquire("order", { ttlMs: 600_000 })).rejects.toMatchObject({ outcome: "unknown" });
    expect(await openElsewhere().acquire("order", { waitMs: 20_000 })).toBeDefined();
  });

  test("a late request for an abandoned grant changes nothing", async () => {
    const here = open({ commandTimeoutMs: 300 });
    const hit = server.faults.plan("held-lost", isGrant);
    const abandoned = here.acquire("order", { ttlMs: 60_000, waitMs: 100 });
    await hit;
    await expect(abandoned).rejects.toMatchObject({ code: expect.stringMatching(/timeout|unavailable/) });
    const lease = await openElsewhere().acquire("order", { waitMs: 20_000 });
    server.faults.letGo();
    await here.inspect("order");
    expect(await openElsewhere().checkFence("order", lease.fencingToken)).toBe("current");
    expect(await lease.release()).toBe(true);
  });

  test("a late extension keeps no lease of another holder from being granted", async () => {
    const lease = await open({ commandTimeoutMs: 200 }).acquire("order", { ttlMs: 1_000, renew: false });
    const hit = server.faults.plan("held-lost", isGrant);
    await expect(lease.extend()).rejects.toMatchObject({ outcome: "unknown" });
    await hit;
    const next = await openElsewhere().acquire("order", { ttlMs: 60_000, waitMs: 60_000 });
    expect(lease.remainingMs()).toBe(0);
    server.faults.letGo();
    next.throwIfLost();
    expect(await open().checkFence("order", next.fencingToken)).toBe("current");
    expect(await next.release()).toBe(true);
  });

  test("after a lost reply to an extension, the next extension ends before the next holder's", async () => {
    const clock = manualClock();
    const stores = cluster.urls.map((url) => new NacosStore(resolveOptions(url, { clock })));
    const [here, there] = stores as [NacosStore, NacosStore];
    const attempt = { key: "order", token: "t1", ttlMs: 10_000, waitMs: null, owner: "o", entryTtlMs: 4_000 };
    const rest = { lockMode: undefined, ticket: undefined, reason: undefined, labels: undefined };
    expect(await here.acquire({ ...attempt, ...rest }, () => false)).toMatchObject({ outcome: "granted" });
    await clock.advance(5_000);
    void server.faults.plan("lost", isGrant);
    const extension = { key: "order", token: "t1", fencingToken: undefined, ttlMs: 10_000, info: undefined };
    await expect(here.extend(extension)).rejects.toMatchObject({ outcome: "unknown" });
    await there.inspect("order"); // the extension is known from now on
    const before = server.requests.length;
    await clock.advance(5_000); // the first driver looks for its grant, whose TTL has passed
    await expect.poll(() => server.requests.length).toBeGreaterThan(before);
    await here.inspect("order");
    expect(await here.verify("order", "t1")).toBe(-1); // the lost reply had the TTL in force
    const remainingMs = Number(await here.extend({ ...extension, ttlMs: 0 }));
    await clock.advance(remainingMs - 1);
    expect(await there.acquire({ ...attempt, ...rest, token: "t2" }, () => false)).toMatchObject({
      outcome: "held",
    });
    await Promise.all(stores.map((store) => store.close()));
  });

  test("two first requests for a key have one holder, although both creations succeed", async () => {
    const held = server.faults.plan("held", isPublication);
    const first = open().tryAcquire("order", { ttlMs: 60_000 });
    await held;
    const second = await openElsewhere().tryAcquire("order", { ttlMs: 60_000 });
    server.faults.letGo();
    expect(second).not.toBeNull();
    expect(await first).toBeNull();
  });

  test("many processes increment a counter one after the other", async () => {
    const drivers = [open(), openElsewhere(), open(), openElsewhere()];
    const tokens: bigint[] = [];
    let [inside, count] = [0, 0];
    for (const fault of ["lost", "cut", "failed", "failed-late"] as const) {
      let requests = 0;
      void server.faults.plan(fault, (one) => isPublication(one) && ++requests % 5 === 0, 5);
    }
    const work = Array.from({ length: 32 }, (_, task) =>
      (drivers[task % 4] as Locks).withLock("counter", { waitMs: 120_000 }, async ({ fencingToken }) => {
        inside += 1;
        tokens.push(fencingToken);
        await new Promise((resolve) => setTimeout(resolve, 1));
        count += inside === 1 ? 1 : 0;
        inside -= 1;
      }),
    );
    await Promise.all(work);
    expect(count).toBe(32);
    expect(tokens).toEqual(tokens.toSorted((a, b) => (a < b ? -1 : 1)));
  });

  test("a holder of a frozen server knows its loss before another holder is granted the lock", async () => {
    const lease = await open({ commandTimeoutMs: 300 }).acquire("order", { ttlMs: 2_000 });
    const waiting = openElsewhere().acquire("order", { waitMs: 60_000 });
    server.freeze();
    expect(await remainingAtLoss(lease)).toBeGreaterThanOrEqual(0);
    const next = await waiting;
    expect(lease.signal.reason).toMatchObject({ code: "lease-lost" });
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    server.thaw();
    await expect.poll(() => server.requests.length).toBeGreaterThan(0);
    next.throwIfLost();
    expect(await next.release()).toBe(true);
  });

  test("a frozen server is replaced by the next, and the lease lasts", async () => {
    const here = opening([server.url, cluster.urls[1] as string], { commandTimeoutMs: 1_000 });
    const lease = await here.acquire("order", { ttlMs: 6_000 });
    server.freeze();
    await lease.extend(60_000).catch(() => lease.extend(60_000));
    expect(await lease.release()).toBe(true);
  });
});

async function extended(lease: Lease): Promise<boolean> {
  return lease.extend(60_000).then(
    () => true,
    () => false,
  );
}
