import { startProxy, waitUntil, type Proxy } from "@holdfast/test-kit";
import { createLocks, type Locks } from "holdfast";
import { postgres, type PostgresOptions } from "holdfast/postgres";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { onPostgres, startPostgres, type PostgresServer } from "../../support/postgres-server.ts";
import { startPostgresWorker, type PostgresWorker } from "../../support/postgres-workers.ts";

onPostgres("a driver for PostgreSQL", () => {
  let server: PostgresServer;
  let proxy: Proxy;
  /** Reaches the server without the proxy. */
  let direct: Locks;
  const closing: (() => Promise<unknown>)[] = [];
  let key: string;

  function open(url: string, options?: PostgresOptions): Locks {
    const pool = new pg.Pool({ connectionString: url, max: 5 });
    pool.on("error", () => undefined);
    const locks = createLocks(postgres(pool, options));
    closing.unshift(async () => {
      await locks.close();
      await pool.end();
    });
    return locks;
  }

  const proxied = (options?: PostgresOptions): Locks =>
    open(`postgres://holdfast@127.0.0.1:${proxy.port}/postgres`, options);

  beforeAll(async () => {
    server = await startPostgres();
    proxy = await startProxy(server.port);
  });

  afterAll(async () => {
    await proxy.stop();
    await server.stop();
  });

  beforeEach(() => {
    key = `order:${crypto.randomUUID()}`;
    direct = open(server.url);
  });

  afterEach(async () => {
    await Promise.all(closing.splice(0).map((close) => close()));
  });

  test("a lease and a waiter live through a crash of the server", async () => {
    const [here, there] = [open(server.url), open(server.url, { listen: true })];
    const lease = await here.acquire(key, { ttlMs: 15_000 });
    const waiting = there.acquire(key, { waitMs: 30_000 });
    await waitUntil(async () => (await here.inspect(key)).waiterCount === 1, "the other waits");
    await server.crash();
    await server.restart();
    await waitUntil(() => here.tryAcquire(`${key}:other`).then(Boolean, () => false), "the server replies");
    lease.throwIfLost();
    expect((await here.inspect(key)).holders).toMatchObject([{ fencingToken: lease.fencingToken }]);
    expect(await direct.tryAcquire(key)).toBeNull();
    expect(await lease.release()).toBe(true);
    expect((await waiting).fencingToken).toBeGreaterThan(lease.fencingToken);
  });

  test("a lease is lost at its deadline while the server is frozen, before another can hold the lock", async () => {
    const locks = proxied({ commandTimeoutMs: 200 });
    const lease = await locks.acquire(key, { ttlMs: 1_000 });
    const waiting = direct.acquire(key);
    proxy.pause("requests");
    const next = await waiting;
    expect(lease.signal.aborted).toBe(true);
    expect(lease.signal.reason).toMatchObject({ code: "lease-lost", reason: "engine-unreachable" });
    proxy.resume("requests");
    next.throwIfLost();
    expect(await next.release()).toBe(true);
  });

  test("an acquire whose reply is lost is granted once, by its repeat", async () => {
    const locks = proxied();
    await locks.acquire(`${key}:warm`);
    for (const acquire of ["acquire", "tryAcquire"] as const) {
      const lost = proxy.loseNextReply(/\.run_acquire/);
      const lease = await locks[acquire](`${key}:${acquire}`);
      await lost;
      const { holders } = await direct.inspect(`${key}:${acquire}`);
      expect(holders).toMatchObject([{ fencingToken: lease?.fencingToken }]);
      expect(await lease?.release()).toBe(true);
      expect((await direct.inspect(`${key}:${acquire}`)).holders).toEqual([]);
    }
  });

  test("a try that gets no reply leaves no grant until its TTL, although its connection stays open", async () => {
    const muting = await startProxy(server.port);
    const url = `postgres://holdfast@127.0.0.1:${muting.port}/postgres`;
    const locks = open(url, { commandTimeoutMs: 300 });
    await (await locks.acquire(key)).release();
    muting.muteConnections(/"granted"/);
    await expect(locks.tryAcquire(key, { ttlMs: 600_000 })).rejects.toMatchObject({ outcome: "unknown" });
    const lease = await direct.acquire(key, { waitMs: 20_000 });
    expect(await lease.release()).toBe(true);
    await muting.stop();
  });

  test("a request that is executed after its repeat was granted and released leaves no queue entry", async () => {
    const locks = proxied({ commandTimeoutMs: 300 });
    await locks.acquire(`${key}:warm`);
    proxy.holdBack(/\.run_acquire/);
    const waiting = locks.acquire(key, { waitMs: 60_000 });
    await waitUntil(() => proxy.heldBack === 1, "the proxy holds the first request");
    proxy.holdBack(undefined);
    expect(await (await waiting).release()).toBe(true);
    await direct.acquire(key, { ttlMs: 60_000 });
    const queued = proxy.serverSent(/"queued"/);
    proxy.releaseHeld();
    await queued;
    const client = new pg.Client({ connectionString: server.url });
    closing.push(() => client.end());
    await client.connect();
    await waitUntil(async () => {
      const { rowCount } = await client.query("SELECT FROM holdfast.waiters WHERE key = $1", [key]);
      return rowCount === 0;
    }, "the entry is removed");
  });

  test("an extension and a release whose replies are lost have their effect", async () => {
    const locks = proxied();
    const lease = await locks.acquire(key, { ttlMs: 5_000, renew: false });
    const extensionLost = proxy.loseNextReply(/\.run_extend/);
    await expect(lease.extend(20_000)).rejects.toMatchObject({ code: "engine-unavailable" });
    await extensionLost;
    expect((await direct.inspect(key)).remainingMs).toBeGreaterThan(10_000);
    const releaseLost = proxy.loseNextReply(/\.run_release/);
    expect(await lease.release()).toBe(true);
    await releaseLost;
    expect((await direct.inspect(key)).holders).toEqual([]);
  });

  test("a cut connection loses no lease, no place in the queue, and no notification for longer than a poll", async () => {
    const locks = proxied({ listen: true });
    const lease = await locks.acquire(`${key}:held`);
    const holder = await direct.acquire(key);
    const first = locks.acquire(key, { waitMs: 20_000 });
    await waitUntil(async () => (await direct.inspect(key)).waiterCount === 1, "the first waits");
    const second = open(server.url).acquire(key, { waitMs: 20_000 });
    await waitUntil(async () => (await direct.inspect(key)).waiterCount === 2, "the second waits");
    proxy.cut();
    await holder.release();
    const granted = await first;
    await granted.release();
    expect((await second).fencingToken).toBeGreaterThan(granted.fencingToken);
    await lease.extend();
    await waitUntil(
      async () => (await locks.admin.nodes())[0]?.notifications === "verified",
      "the driver listens again",
    );
  });

  test("an acquire that waited for a row lock expires its grant by the time after the wait", async () => {
    await (await direct.acquire(key)).release();
    const blocker = new pg.Client({ connectionString: server.url });
    await blocker.connect();
    await blocker.query("BEGIN");
    await blocker.query("SELECT FROM holdfast.locks WHERE key = $1 FOR UPDATE", [key]);
    const waiting = direct.acquire(key, { ttlMs: 60_000 });
    await waitUntil(async () => {
      const { rows } = await blocker.query("SELECT FROM pg_locks WHERE NOT granted");
      return rows.length > 0;
    }, "the acquire waits");
    const { rows } = await blocker.query<{ us: string }>(
      "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint::text AS us",
    );
    await blocker.query("COMMIT");
    await blocker.end();
    const lease = await waiting;
    expect(lease.fencingToken).toBeGreaterThan(BigInt(rows[0]?.us as string));
    await lease.release();
  });

  test("an unreachable server rejects a try within the time limit, and a wait at its deadline", async () => {
    const locks = open("postgres://holdfast@127.0.0.1:1/postgres", { commandTimeoutMs: 300 });
    await expect(locks.tryAcquire(key)).rejects.toMatchObject({
      code: "engine-unavailable",
      outcome: "none",
    });
    await expect(locks.acquire(key, { waitMs: 500 })).rejects.toMatchObject({ code: "engine-unavailable" });
    expect(await locks.admin.nodes()).toMatchObject(
      [{ reachable: false, error: /ECONNREFUSED/ }].map(matching),
    );
  });

  test("a refused login and a missing database reject at once", async () => {
    const missing = open(server.url.replace(/postgres$/, "missing"));
    await expect(missing.acquire(key, { waitMs: Infinity })).rejects.toThrow(
      'PostgreSQL: database "missing" does not exist',
    );
    const unknown = open(server.url.replace("holdfast@", "stranger@"));
    await expect(unknown.acquire(key, { waitMs: Infinity })).rejects.toThrow(
      'PostgreSQL: role "stranger" does not exist',
    );
  });

  function startWorker(option?: "listen"): PostgresWorker {
    const worker = startPostgresWorker(server.url, option);
    closing.push(async () => worker.child.kill("SIGKILL"));
    return worker;
  }

  test("the lock of a killed process is free after the TTL, and its queue entry leaves the queue", async () => {
    const holder = startWorker();
    const waiter = startWorker("listen");
    await Promise.all([holder.next(), waiter.next()]);
    holder.child.send({ key, options: { ttlMs: 2_000 } });
    expect(await holder.next()).toMatchObject({ acquired: key });
    waiter.child.send({ key, options: { waitMs: 60_000 } });
    await waitUntil(async () => (await direct.inspect(key)).waiterCount === 1, "the waiter waits");
    waiter.child.kill("SIGKILL");
    holder.child.kill("SIGKILL");
    const lease = await direct.acquire(key, { waitMs: 20_000 });
    expect((await direct.inspect(key)).waiterCount).toBe(0);
    await lease.release();
  });

  test("a frozen holder learns of its loss when it continues, and its transaction cannot commit", async () => {
    const worker = startWorker();
    await worker.next();
    worker.child.send({ key, options: { ttlMs: 1_000 } });
    const { fencingToken } = (await worker.next()) as { fencingToken: string };
    worker.child.kill("SIGSTOP");
    const lease = await direct.acquire(key, { waitMs: 20_000 });
    expect(lease.fencingToken).toBeGreaterThan(BigInt(fencingToken));
    worker.child.kill("SIGCONT");
    expect(await worker.next()).toMatchObject({ lost: key, commits: "lease-lost" });
    lease.throwIfLost();
    expect(await lease.release()).toBe(true);
  });

  test("a frozen waiter delays the next waiter by at most its queue entry's TTL, and then keeps its place", async () => {
    const worker = startWorker("listen");
    await worker.next();
    const holder = await direct.acquire(key);
    // A poll that is under way at the stop may be granted the lock, which is then held until this TTL.
    worker.child.send({ key, options: { waitMs: 60_000, ttlMs: 5_000 } });
    await waitUntil(async () => (await direct.inspect(key)).waiterCount === 1, "the worker waits");
    worker.child.kill("SIGSTOP");
    const next = open(server.url).acquire(key, { waitMs: 20_000 });
    await holder.release();
    const lease = await next;
    worker.child.kill("SIGCONT");
    await waitUntil(async () => (await direct.inspect(key)).waiterCount === 1, "the worker waits again");
    await lease.release();
    expect(await worker.next()).toMatchObject({ acquired: key });
  });
});

function matching({ error, ...rest }: { error: RegExp }): object {
  return { ...rest, error: expect.stringMatching(error) };
}
