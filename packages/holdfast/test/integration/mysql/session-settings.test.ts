import { createLocks, type Locks } from "holdfast";
import { assertHeld, mysql } from "holdfast/mysql";
import {
  createPool,
  createPoolCluster,
  type Pool,
  type PoolConnection,
  type RowDataPacket,
} from "mysql2/promise";
import { afterAll, beforeAll, expect, test } from "vitest";

import { onMariaDb, startMariaDb, type MariaDbServer } from "../../support/mariadb-server.ts";

onMariaDb("a connection of mysql2 that the program left with other settings", () => {
  let server: MariaDbServer;
  let otherPool: Pool;
  let there: Locks;

  beforeAll(async () => {
    server = await startMariaDb();
    otherPool = createPool({ uri: server.url });
    there = createLocks(mysql(otherPool));
    await there.inspect("any"); // creates the tables
    await otherPool.query("CREATE DATABASE tenant");
  });

  afterAll(async () => {
    await there.close();
    await otherPool.end();
    await server.stop();
  });

  async function leave(pool: Pool, count: number, statement: string): Promise<void> {
    const connections: PoolConnection[] = [];
    while (connections.length < count) {
      connections.push(await pool.getConnection());
    }
    await Promise.all(connections.map((connection) => connection.query(statement)));
    connections.forEach((connection) => connection.release());
  }

  const settings: readonly [setting: string, connections: number][] = [
    ["SET timestamp = 1893456000", 1],
    ["SET timestamp = 1000000000", 1],
    ["SET SESSION TRANSACTION READ ONLY", 1],
    ["SET TRANSACTION READ ONLY", 1],
    ["SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", 1],
    ["SET completion_type = 1", 1],
    ["SET completion_type = 2", 1],
    ["SET sql_big_selects = 0, max_join_size = 1", 1],
    ["SET character_set_client = latin1", 1],
    ["SET collation_connection = ucs2_general_ci", 1],
    ["SET sql_mode = 'ORACLE,EMPTY_STRING_IS_NULL'", 1],
    ["BEGIN", 10],
  ];

  test.each(settings)("%s: nothing depends on them (of %i connections)", async (setting, connectionLimit) => {
    const pool = createPool({ uri: server.url, connectionLimit });
    const here = createLocks(mysql(pool));
    const key = `счёт: ${setting}`;
    const taken = `${key}, taken`;
    const before = await there.acquire(taken);
    await leave(pool, connectionLimit, setting);
    expect(await here.tryAcquire(taken)).toBeNull();
    await leave(pool, connectionLimit, setting);
    const lease = await here.acquire(key, { ttlMs: 15_500, renew: false, owner: "под" });
    expect(await there.tryAcquire(key)).toBeNull();
    expect((await there.inspect(key)).remainingMs).toBeLessThanOrEqual(15_500);
    await leave(pool, connectionLimit, setting);
    await lease.extend(15_500);
    await leave(pool, connectionLimit, setting);
    expect((await here.inspect(key)).holders).toMatchObject([{ owner: "под" }]);
    await leave(pool, connectionLimit, setting);
    expect(await here.checkFence(key, lease.fencingToken)).toBe("current");
    await leave(pool, connectionLimit, setting);
    const { fencingToken } = before;
    expect(await here.admin.breakLock(taken, { fencingToken, reason: "сбой" })).toBe(true);
    expect((await there.admin.audit({ key: taken })).records).toMatchObject([{ reason: "сбой" }]);
    await leave(pool, connectionLimit, setting);
    expect(await lease.release()).toBe(true);
    await here.close();
    await pool.end();
  });

  test("leaves no open transaction of the driver after a COMMIT that chains", async () => {
    const pool = createPool({ uri: server.url, connectionLimit: 1 });
    const locks = createLocks(mysql(pool));
    await leave(pool, 1, "SET completion_type = 1");
    await locks.inspect("chain");
    const [rows] = await pool.query<RowDataPacket[]>("SELECT @@in_transaction AS open");
    expect(rows).toEqual([{ open: 0 }]);
    await locks.close();
    await pool.end();
  });

  test("is replaced after a time limit, so that a repeat succeeds", async () => {
    const pool = createPool({ uri: server.url, connectionLimit: 1 });
    const locks = createLocks(mysql(pool));
    const lease = await locks.acquire("limit", { ttlMs: 60_000 });
    await leave(pool, 1, "SET max_statement_time = 0.000001");
    await locks.inspect("limit");
    await leave(pool, 1, "SET max_statement_time = 0.000001");
    await lease.release();
    expect(await there.tryAcquire("limit")).not.toBeNull();
    await locks.close();
    await pool.end();
  });

  test("finds the grant in assertHeld", async () => {
    const lease = await there.acquire("счёт");
    const connection = await otherPool.getConnection();
    await connection.query("SET character_set_client = latin1");
    await connection.beginTransaction();
    await assertHeld(connection, lease);
    await connection.rollback();
    connection.destroy();
    expect(await lease.release()).toBe(true);
  });

  test.each(["ORACLE", "EMPTY_STRING_IS_NULL", ""])(
    "creates the procedures that another connection would create: %s",
    async (mode) => {
      await otherPool.query("CREATE OR REPLACE DATABASE fresh");
      const pool = createPool({ uri: server.url, database: "fresh", connectionLimit: 1 });
      await leave(pool, 1, `SET sql_mode = '${mode}'`);
      const locks = createLocks(mysql(pool));
      const { fencingToken } = await locks.acquire("key");
      expect(await locks.admin.breakLock("key", { fencingToken, reason: "a test" })).toBe(true);
      const [modes] = await pool.query<RowDataPacket[]>("SELECT @@sql_mode LIKE ? AS kept", [`%${mode}%`]);
      expect(modes).toEqual([{ kept: 1 }]);
      await locks.close();
      await pool.end();
    },
  );

  test("of a pool cluster does not decide the database", async () => {
    const cluster = createPoolCluster();
    cluster.add("only", { uri: server.url, connectionLimit: 1 });
    const pool = cluster.of("*");
    const connection = await pool.getConnection();
    await connection.query("USE tenant");
    connection.release();
    const locks = createLocks(mysql(pool));
    const lease = await locks.acquire("cluster");
    expect(await there.tryAcquire("cluster")).toBeNull();
    expect(await lease.release()).toBe(true);
    const [tables] = await otherPool.query<RowDataPacket[]>("SHOW TABLES IN tenant");
    expect(tables).toEqual([]);
    await locks.close();
    await cluster.end();
  });
});
