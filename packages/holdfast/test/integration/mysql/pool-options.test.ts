import { createLocks } from "holdfast";
import { mysql } from "holdfast/mysql";
import { createPool, type Pool, type PoolConnection, type PoolOptions } from "mysql2/promise";
import { afterAll, beforeAll, expect, test } from "vitest";

import { onMariaDb, startMariaDb, type MariaDbServer } from "../../support/mariadb-server.ts";

/** Options by which a program changes the results of its own statements on the pool. */
const optionsOfPrograms: Readonly<Record<string, PoolOptions>> = {
  "without casts": { typeCast: false },
  "with all values as strings": { typeCast: (field) => field.string() },
  "with booleans": { typeCast: (field, next) => (field.length === 1 ? field.string() === "1" : next()) },
  "with large integers as BigInt": {
    typeCast: (field, next) => (field.type === "LONGLONG" ? BigInt(field.string() ?? 0) : next()),
  },
  "with large integers as strings": { supportBigNumbers: true, bigNumberStrings: true },
  "with decimals as numbers": { decimalNumbers: true },
  "with rows as arrays": { rowsAsArray: true },
  "with rows by table": { nestTables: true },
  "with columns by table": { nestTables: "_" },
  "with named placeholders": { namedPlaceholders: true },
  "with dates as strings": { dateStrings: true },
};

onMariaDb("a lock in MySQL on a pool", () => {
  let server: MariaDbServer;

  beforeAll(async () => {
    server = await startMariaDb();
  });

  afterAll(async () => {
    await server.stop();
  });

  test.each(Object.entries(optionsOfPrograms))("%s has the same results", async (name, options) => {
    const pool = createPool({ uri: server.url, ...options });
    const locks = createLocks(mysql(pool));
    const key = `order:${name}`;
    const lease = await locks.acquire(key, { ttlMs: 20_000, owner: "pod", labels: { order: "7" } });
    const { fencingToken } = lease;
    await lease.extend(30_000);
    const queue = new AbortController();
    const waiting = locks.acquire(key, { signal: queue.signal }).catch(() => "aborted");
    await expect.poll(async () => (await locks.inspect(key)).waiterCount).toBe(1);
    const state = await locks.inspect(key);
    expect(state.holders).toMatchObject([{ owner: "pod", labels: { order: "7" }, fencingToken }]);
    expect(state.remainingMs).toBeGreaterThan(20_000);
    expect(state.waiters).toMatchObject([{ position: 0, waitedMs: expect.any(Number) }]);
    expect((await locks.admin.list({ prefix: key })).locks.map((lock) => lock.key)).toEqual([key]);
    expect(await locks.checkFence(key, fencingToken)).toBe("current");
    expect(await locks.admin.nodes()).toMatchObject([{ reachable: true, role: "primary" }]);
    queue.abort();
    expect(await waiting).toBe("aborted");
    expect(await lease.release()).toBe(true);
    expect(await locks.withLock(key, () => "done")).toBe("done");
    const held = await locks.acquire(key);
    expect(await locks.admin.breakLock(key, { fencingToken: held.fencingToken, reason: "a test" })).toBe(
      true,
    );
    expect((await locks.admin.audit({ key })).records).toMatchObject([{ fencingToken: held.fencingToken }]);
    await held.release();
    await locks.close();
    await pool.end();
  });

  /** How a program leaves a connection in another database. */
  const moves: readonly [how: string, move: (connection: PoolConnection) => Promise<unknown>][] = [
    ["USE", (connection) => connection.query("USE tenant")],
    ["changeUser", (connection) => connection.changeUser({ database: "tenant" })],
  ];

  test.each(moves)(
    "whose connection was moved to another database by %s stays in its own",
    async (_, move) => {
      const [pool, other] = [1, 1].map((connectionLimit) => createPool({ uri: server.url, connectionLimit }));
      const [here, there] = [createLocks(mysql(pool as Pool)), createLocks(mysql(other as Pool))];
      await other?.query("CREATE DATABASE IF NOT EXISTS tenant");
      const connection = await (pool as Pool).getConnection();
      await move(connection);
      connection.release();
      const lease = await here.acquire("account:7");
      expect(await there.tryAcquire("account:7")).toBeNull();
      await lease.extend();
      expect((await here.admin.list({ prefix: "account:" })).locks).toHaveLength(1);
      expect(await lease.release()).toBe(true);
      const [tables] = (await other?.query("SHOW TABLES IN tenant")) ?? [];
      expect(tables).toEqual([]);
      await Promise.all([here.close(), there.close()]);
      await Promise.all([pool?.end(), other?.end()]);
    },
  );

  test("whose settings are not visible uses the database of its first call", async () => {
    const pool = createPool({ uri: server.url, connectionLimit: 1 });
    const locks = createLocks(
      mysql({
        query: (sql) => pool.query(sql),
        execute: (statement, values) => pool.execute(statement, values),
      }),
    );
    await pool.query("CREATE DATABASE IF NOT EXISTS tenant");
    const lease = await locks.acquire("account:8");
    await pool.query("USE tenant");
    await lease.extend();
    expect(await lease.release()).toBe(true);
    await locks.close();
    await pool.end();
  });

  test("whose first calls meet connections in two databases uses one of them", async () => {
    const [first, second] = [1, 1].map(() => createPool({ uri: server.url, connectionLimit: 1 }));
    await createLocks(mysql(first as Pool)).inspect("any"); // creates the tables
    await second?.query("CREATE DATABASE IF NOT EXISTS `a$&b`");
    await second?.query("USE `a$&b`");
    let calls = 0;
    const next = (): Pool => [first, second][calls++ % 2] as Pool;
    const locks = createLocks(
      mysql({ query: (sql) => next().query(sql), execute: (sql, values) => next().execute(sql, values) }),
    );
    const leases = await Promise.all([locks.acquire("one"), locks.acquire("two")]);
    expect((await locks.admin.list()).locks.map(({ key }) => key)).toEqual(["one", "two"]);
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual([true, true]);
    await locks.close();
    await Promise.all([first?.end(), second?.end()]);
  });
});
