import { setTimeout as pause } from "node:timers/promises";

import { limitMs, freePort, startProxy, type Proxy } from "@holdfast/test-kit";
import { createLocks, type Lease, type Locks } from "holdfast";
import { connect } from "holdfast/connect";
import { zookeeper, type ZooKeeperOptions } from "holdfast/zookeeper";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { remainingAtLoss } from "../../support/loss.ts";
import { onZooKeeper, startZooKeeper, type ZooKeeperServer } from "../../support/zookeeper-server.ts";

onZooKeeper("ZooKeeper under faults:", () => {
  let server: ZooKeeperServer;
  let proxy: Proxy;
  let opened: Locks[] = [];

  beforeAll(async () => {
    server = await startZooKeeper();
  });

  afterAll(async () => {
    await server.stop();
  });

  beforeEach(async () => {
    proxy = await startProxy(server.port);
  });

  afterEach(async () => {
    server.resume(); // a failed test may have left the server frozen
    await Promise.all(opened.map((locks) => locks.close()));
    opened = [];
    await proxy.stop();
  });

  function open(options?: ZooKeeperOptions, servers: string | readonly string[] = server.address): Locks {
    const locks = createLocks(zookeeper(servers, options));
    opened.push(locks);
    return locks;
  }

  function openThroughProxy(options?: ZooKeeperOptions): Locks {
    return open(options, `127.0.0.1:${proxy.port}`);
  }

  async function queued(locks: Locks, key: string, count: number): Promise<void> {
    await expect
      .poll(async () => (await locks.inspect(key)).waiterCount, { timeout: limitMs(30_000) })
      .toBe(count);
  }

  test("a server that is killed and restarted keeps the grant and the queue", async () => {
    const [here, there] = [open(), open()];
    const lease = await here.acquire("killed", { ttlMs: 60_000 });
    const next = there.acquire("killed", { ttlMs: 60_000, waitMs: 120_000 });
    await queued(here, "killed", 1);
    await server.kill();
    await expect(here.inspect("killed")).rejects.toMatchObject({ code: "engine-unavailable" });
    await server.restart();
    await expect.poll(() => extended(lease), { timeout: limitMs(30_000) }).toBe(true);
    expect(await open().tryAcquire("killed")).toBeNull();
    expect(await lease.release()).toBe(true);
    const following = await next;
    expect(following.fencingToken).toBeGreaterThan(lease.fencingToken);
    expect(await following.release()).toBe(true);
  });

  test("a holder of a frozen server knows its loss before the end of its validity", async () => {
    const here = open({ commandTimeoutMs: 500 });
    const lease = await here.acquire("frozen", { ttlMs: 4_000 });
    server.freeze();
    expect(await remainingAtLoss(lease)).toBeGreaterThanOrEqual(0);
    expect(() => lease.throwIfLost()).toThrow(/is lost/);
    server.resume();
    const next = await open().acquire("frozen", { waitMs: 60_000 });
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    expect(await lease.release()).toBe(false);
    next.throwIfLost();
    expect(await next.release()).toBe(true);
  });

  test("a holder without a connection knows its loss before another is granted the lock", async () => {
    const here = openThroughProxy();
    const lease = await here.acquire("cut off", { ttlMs: 2_000 });
    proxy.pause("requests");
    proxy.pause("replies");
    const next = await open().acquire("cut off", { waitMs: 60_000 });
    expect(lease.signal.aborted).toBe(true);
    expect(lease.remainingMs()).toBe(0);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    proxy.resume("requests");
    proxy.resume("replies");
    await here.inspect("cut off").catch(() => undefined);
    next.throwIfLost();
    expect(await next.release()).toBe(true);
  });

  test("a lease survives a cut connection", async () => {
    const here = openThroughProxy();
    const lease = await here.acquire("cut", { ttlMs: 60_000 });
    proxy.cut();
    await expect.poll(() => extended(lease), { timeout: limitMs(30_000) }).toBe(true);
    expect(await open().tryAcquire("cut")).toBeNull();
    expect(await lease.release()).toBe(true);
  });

  test("a lease survives the end of its session, and a waiter keeps its place", async () => {
    const here = openThroughProxy({ sessionTimeoutMs: 1_000 });
    const [holder, there] = [openThroughProxy({ sessionTimeoutMs: 1_000 }), open()];
    const lease = await holder.acquire("expired session", { ttlMs: 120_000 });
    const order: string[] = [];
    const first = here.withLock("expired session", { waitMs: 120_000 }, () => order.push("first"));
    await queued(there, "expired session", 1);
    const second = there.withLock("expired session", { waitMs: 120_000 }, () => order.push("second"));
    await queued(there, "expired session", 2);
    proxy.refuse(true);
    proxy.cut();
    await queued(there, "expired session", 1); // the session has expired
    proxy.refuse(false);
    await queued(there, "expired session", 2);
    await expect.poll(() => extended(lease), { timeout: limitMs(30_000) }).toBe(true);
    expect(await lease.release()).toBe(true);
    await Promise.all([first, second]);
    expect(order).toEqual(["first", "second"]);
  });

  test("a grant whose reply was lost is found by the repeat", async () => {
    const here = openThroughProxy();
    await (await here.acquire("lost grant")).release();
    const lost = proxy.loseNextReply(/held-/);
    const lease = await here.acquire("lost grant", { ttlMs: 60_000, waitMs: 60_000 });
    await lost;
    expect(await here.checkFence("lost grant", lease.fencingToken)).toBe("current");
    expect(await open().tryAcquire("lost grant")).toBeNull();
    expect(await lease.release()).toBe(true);
    expect(await open().tryAcquire("lost grant")).not.toBeNull();
  });

  test("a queue entry whose reply was lost leaves no residue", async () => {
    const [here, there] = [openThroughProxy(), open()];
    const lease = await there.acquire("lost entry", { ttlMs: 60_000 });
    const lost = proxy.loseNextReply(/wait-/);
    const next = here.acquire("lost entry", { waitMs: 60_000 });
    await lost;
    await queued(there, "lost entry", 1);
    await lease.release();
    expect(await (await next).release()).toBe(true);
    await queued(there, "lost entry", 0);
    expect(await there.tryAcquire("lost entry")).not.toBeNull();
  });

  test("a late request of a granted attempt leaves no queue entry", async () => {
    const [here, there] = [openThroughProxy(), open()];
    await (await here.acquire("late entry")).release();
    const lease = await there.acquire("late entry", { ttlMs: 60_000 });
    proxy.holdBack(/held-/); // the first request reads the grant
    const next = here.acquire("late entry", { ttlMs: 60_000, waitMs: 60_000 });
    await expect.poll(() => proxy.heldBack, { timeout: limitMs(30_000) }).toBe(1);
    await expect(here.inspect("late entry")).rejects.toMatchObject({ code: "engine-unavailable" });
    await pause(1_000); // the proxy holds the repeat, too
    await lease.release();
    proxy.releaseHeld(); // the first request enters the queue, and its repeat is granted
    expect(await (await next).release()).toBe(true);
    await queued(there, "late entry", 0);
    expect(await there.tryAcquire("late entry")).not.toBeNull();
  });

  test("a release whose reply was lost is confirmed by the repeat", async () => {
    const lease = await openThroughProxy().acquire("lost release", { ttlMs: 60_000 });
    const lost = proxy.loseNextReply(/held-/);
    expect(await lease.release()).toBe(true);
    await lost;
    expect(await open().tryAcquire("lost release")).not.toBeNull();
  });

  test("an extension whose reply was lost is confirmed by the repeat", async () => {
    const lease = await openThroughProxy().acquire("lost extension", { ttlMs: 30_000 });
    const lost = proxy.loseNextReply(/held-/);
    await extended(lease);
    await lost;
    await expect.poll(() => extended(lease), { timeout: limitMs(30_000) }).toBe(true);
    expect(await lease.release()).toBe(true);
  });

  test("an abandoned request leaves neither a grant nor a queue entry", async () => {
    const [here, there] = [openThroughProxy({ commandTimeoutMs: 300 }), open()];
    await (await here.acquire("abandoned")).release();
    const lost = proxy.loseNextReply(/held-/);
    const tried = here.tryAcquire("abandoned", { ttlMs: 600_000 }).catch(() => null);
    await lost;
    await (await tried)?.release();
    expect(await (await there.acquire("abandoned", { waitMs: 60_000 })).release()).toBe(true);
  });

  test("a waiter that leaves without a connection does not block the queue of a session that continues", async () => {
    const [here, there] = [openThroughProxy({ sessionTimeoutMs: 10_000 }), open()];
    const lease = await there.acquire("left", { ttlMs: 60_000 });
    const leaving = new AbortController();
    const waiting = here.acquire("left", { ttlMs: 500, waitMs: 60_000, signal: leaving.signal });
    await queued(there, "left", 1);
    proxy.refuse(true);
    proxy.cut();
    leaving.abort(new Error("no longer needed"));
    await expect(waiting).rejects.toThrow("no longer needed");
    const pause = await there.acquire("left: pause", { ttlMs: 2_000, renew: false });
    await remainingAtLoss(pause); // the driver no longer repeats the removal
    proxy.refuse(false);
    await queued(there, "left", 0);
    await here.inspect("left"); // the session continues
    expect(await lease.release()).toBe(true);
  });

  test("a waiter does not take a grant that was extended after the waiter had read it", async () => {
    const [waiter, adopter] = [openThroughProxy(), open()];
    const ended = createLocks(zookeeper(server.address));
    const serialized = (await ended.acquire("late takeover", { ttlMs: 1_000 })).transfer();
    await ended.close(); // no process removes the grant at its end
    proxy.holdBack(/"client":/); // the transaction of a grant
    const next = waiter.acquire("late takeover", { waitMs: 120_000 });
    await expect.poll(() => proxy.heldBack, { timeout: limitMs(30_000) }).toBe(1);
    const adopted = await adopter.adopt(serialized);
    proxy.releaseHeld();
    await queued(adopter, "late takeover", 1);
    adopted.throwIfLost();
    expect(await adopter.checkFence("late takeover", adopted.fencingToken)).toBe("current");
    expect(await adopted.release()).toBe(true);
    expect((await next).fencingToken).toBeGreaterThan(adopted.fencingToken);
  });

  test("a late extension of an earlier holder does not shorten the TTL of the next holder", async () => {
    const [here, adopter] = [openThroughProxy(), open()];
    const lease = await here.acquire("late extension", { ttlMs: 5_000, renew: false });
    proxy.pause("requests");
    const late = lease.extend().catch(() => undefined);
    const adopted = await adopter.adopt(lease.transfer());
    await adopted.extend(600_000);
    proxy.resume("requests");
    await late;
    expect((await here.inspect("late extension")).remainingMs).toBeGreaterThan(300_000);
    await adopted.extend(600_000);
    expect(await adopted.release()).toBe(true);
  });

  test("a server that cannot be reached is replaced by the next", async () => {
    const servers = [`127.0.0.1:${await freePort()}`, server.address];
    for (let round = 0; round < 4; round += 1) {
      const lease = await open({}, servers).acquire("failover");
      expect(await lease.release()).toBe(true);
    }
  });

  test("the nodes of a user are closed to others", async () => {
    const url = `zookeeper://user:secret@${server.address}/private/locks`;
    const locks = createLocks(await connect(url));
    opened.push(locks);
    const lease = await locks.acquire("k");
    await expect(open({ root: "/private/locks" }).tryAcquire("k")).rejects.toMatchObject({
      code: "engine-unavailable",
      retryable: false,
    });
    proxy.cut();
    expect(await lease.release()).toBe(true);
  });

  test("the lock of a process that ended is free for a try that never saw its grant", async () => {
    const options = { maxClockDifferenceMs: 1_000 };
    const crashed = openThroughProxy({ ...options, sessionTimeoutMs: 1_000 });
    const lease = await crashed.acquire("crashed", { ttlMs: 1_000 });
    proxy.refuse(true);
    proxy.cut();
    expect(await open(options).tryAcquire("crashed")).toBeNull();
    const next = await tryUntilGranted(() => open(options), "crashed");
    expect(lease.signal.aborted).toBe(true);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
  });

  async function extended(lease: Lease): Promise<boolean> {
    return lease.extend().then(
      () => true,
      () => false,
    );
  }

  /** Each try comes from a driver of its own. */
  async function tryUntilGranted(create: () => Locks, key: string): Promise<Lease> {
    let lease: Lease | null = null;
    await expect
      .poll(async () => (lease = await create().tryAcquire(key)), { timeout: limitMs(30_000) })
      .not.toBeNull();
    return lease as unknown as Lease;
  }
});
