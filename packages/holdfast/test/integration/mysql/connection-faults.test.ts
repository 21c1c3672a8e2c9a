import { startProxy, waitUntil, type Proxy } from "@holdfast/test-kit";
import { createLocks, type Locks } from "holdfast";
import { mysql, type MysqlOptions } from "holdfast/mysql";
import { createPool } from "mysql2/promise";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { onMariaDb, startMariaDb, type MariaDbServer } from "../../support/mariadb-server.ts";

onMariaDb("holdfast/mysql, with a connection that fails,", () => {
  let server: MariaDbServer;
  let proxy: Proxy;
  /** Reaches the server without the proxy. */
  let direct: Locks;
  let proxied: Locks;
  const closing: (() => Promise<unknown>)[] = [];
  let key: string;

  beforeAll(async () => {
    server = await startMariaDb();
    proxy = await startProxy(server.port);
  });

  afterAll(async () => {
    await proxy.stop();
    await server.stop();
  });

  beforeEach(async () => {
    key = `order-${crypto.randomUUID()}`;
    direct = open(server.url);
    const url = new URL(server.url);
    url.port = String(proxy.port);
    proxied = open(url.href, { commandTimeoutMs: 500 });
    await proxied.withLock("warm", () => undefined);
  });

  afterEach(async () => {
    await Promise.all(closing.splice(0).map((close) => close()));
  });

  function open(uri: string, options?: MysqlOptions): Locks {
    const pool = createPool({ uri, connectionLimit: 5 });
    const locks = createLocks(mysql(pool, options));
    closing.unshift(async () => {
      await locks.close();
      await pool.end();
    });
    return locks;
  }

  /** Loses the reply to the next call for the key. A call sends its statement once, and later only values, with the key as digits. */
  const loseNextReply = (name: string): Promise<void> =>
    proxy.loseNextReply(new RegExp(Buffer.from(name).toString("hex")));

  test("an acquire whose reply is lost is granted once, by its repeat", async () => {
    for (const acquire of ["acquire", "tryAcquire"] as const) {
      const own = `${key}-${acquire}`;
      const lost = loseNextReply(own);
      const lease = await proxied[acquire](own);
      await lost;
      expect((await direct.inspect(own)).holders).toMatchObject([{ fencingToken: lease?.fencingToken }]);
      expect(await lease?.release()).toBe(true);
      expect((await direct.inspect(own)).holders).toEqual([]);
    }
  });

  test("an extension and a release whose replies are lost have their effect", async () => {
    const lease = await proxied.acquire(key, { ttlMs: 5_000, renew: false });
    const extensionLost = loseNextReply(key);
    await expect(lease.extend(20_000)).rejects.toMatchObject({ code: "engine-unavailable" });
    await extensionLost;
    expect((await direct.inspect(key)).remainingMs).toBeGreaterThan(10_000);
    const releaseLost = loseNextReply(key);
    expect(await lease.release()).toBe(true);
    await releaseLost;
    expect((await direct.inspect(key)).holders).toEqual([]);
  });

  test("a cut connection loses no lease and no place in the queue", async () => {
    const lease = await proxied.acquire(`${key}-held`);
    const holder = await direct.acquire(key);
    const first = proxied.acquire(key, { waitMs: 20_000 });
    await waitUntil(async () => (await direct.inspect(key)).waiterCount === 1, "the first waits");
    const second = open(server.url).acquire(key, { waitMs: 20_000 });
    await waitUntil(async () => (await direct.inspect(key)).waiterCount === 2, "the second waits");
    proxy.cut();
    await holder.release();
    const granted = await first;
    await granted.release();
    expect((await second).fencingToken).toBeGreaterThan(granted.fencingToken);
    await lease.extend();
    expect(await lease.release()).toBe(true);
  });

  test("a lease is lost at its deadline without replies, before another can hold the lock", async () => {
    const lease = await proxied.acquire(key, { ttlMs: 1_000 });
    const waiting = direct.acquire(key);
    proxy.pause("requests");
    const next = await waiting;
    expect(lease.signal.aborted).toBe(true);
    expect(lease.signal.reason).toMatchObject({ code: "lease-lost", reason: "engine-unreachable" });
    proxy.resume("requests");
    next.throwIfLost();
    expect(await next.release()).toBe(true);
  });

  test("an unreachable server rejects a try within the time limit, and a wait at its deadline", async () => {
    const locks = open("mysql://root@127.0.0.1:1/holdfast", { commandTimeoutMs: 300 });
    await expect(locks.tryAcquire(key)).rejects.toMatchObject({
      code: "engine-unavailable",
      outcome: "none",
    });
    await expect(locks.acquire(key, { waitMs: 500 })).rejects.toMatchObject({ code: "engine-unavailable" });
  });
});
