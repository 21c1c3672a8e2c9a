import { createLocks, type Locks } from "holdfast";
import { assertHeld, mysql, type MysqlClient, type MysqlTransaction } from "holdfast/mysql";
import { createConnection, createPool, type Pool, type RowDataPacket } from "mysql2/promise";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { onMariaDb, startMariaDb, type MariaDbServer } from "../../support/mariadb-server.ts";

onMariaDb("a connection of mysql2 that the program left in a transaction", () => {
  let server: MariaDbServer;
  let pool: Pool;
  let otherPool: Pool;
  let here: Locks;
  let there: Locks;
  let key: string;

  beforeAll(async () => {
    server = await startMariaDb();
    otherPool = createPool({ uri: server.url });
    await otherPool.query("CREATE TABLE account (id INT PRIMARY KEY, balance INT)");
    await otherPool.query("INSERT INTO account VALUES (1, 0)");
  });

  afterAll(async () => {
    await otherPool.end();
    await server.stop();
  });

  beforeEach(() => {
    pool = createPool({ uri: server.url, connectionLimit: 1 });
    [here, there] = [createLocks(mysql(pool)), createLocks(mysql(otherPool))];
    key = `account:${crypto.randomUUID()}`;
  });

  afterEach(async () => {
    await Promise.all([here.close(), there.close()]);
    await pool.end();
  });

  /** As a handler that threw between BEGIN and COMMIT. The pool has no other connection. */
  async function leave(statement = "UPDATE account SET balance = 1"): Promise<void> {
    const connection = await pool.getConnection();
    await connection.beginTransaction();
    await connection.query(statement);
    connection.release();
  }

  async function balance(): Promise<unknown> {
    const [rows] = await otherPool.query<RowDataPacket[]>("SELECT balance FROM account");
    return rows[0]?.["balance"];
  }

  test("gets no grant, no extension and no release, and is not committed", async () => {
    await leave();
    const lease = await here.acquire(key, { ttlMs: 5_000, renew: false });
    await leave();
    await lease.extend(60_000);
    await pool.query("ROLLBACK");
    expect((await there.inspect(key)).remainingMs).toBeGreaterThan(5_000);
    await leave();
    expect(await lease.release()).toBe(true);
    await pool.query("ROLLBACK");
    expect(await there.tryAcquire(key)).not.toBeNull();
    expect(await balance()).toBe(0);
  });

  test("is not committed by the creation of the schema", async () => {
    await otherPool.query("CREATE DATABASE fresh");
    const fresh = createPool({ uri: server.url, database: "fresh", connectionLimit: 1 });
    const connection = await fresh.getConnection();
    const [database] = new URL(server.url).pathname.slice(1).split("/");
    await connection.beginTransaction();
    await connection.query(`UPDATE ${database}.account SET balance = 2`);
    connection.release();
    const locks = createLocks(mysql(fresh));
    expect(await locks.tryAcquire(key)).not.toBeNull();
    expect(await balance()).toBe(0);
    await locks.close();
    await fresh.end();
  });

  test("is not read, because its snapshot may be old", async () => {
    const lease = await here.acquire(key);
    await leave("SELECT * FROM holdfast_holders");
    await there.admin.breakLock(key, { fencingToken: lease.fencingToken, reason: "a test" });
    expect(await here.checkFence(key, lease.fencingToken)).toBe("stale");
    await leave("SELECT * FROM holdfast_holders");
    expect((await here.inspect(key)).holders).toEqual([]);
    expect((await here.admin.list({ prefix: key })).locks).toEqual([]);
  });

  test("as the only one is named as the cause, and the acquire waits for its end", async () => {
    const only = await createConnection(server.url);
    const locks = createLocks(
      mysql({
        query: (sql) => only.query(sql),
        execute: (statement, values) => only.execute(statement, values),
      }),
    );
    await locks.inspect(key);
    await only.beginTransaction();
    await only.query("UPDATE account SET balance = 3");
    await expect(locks.tryAcquire(key)).rejects.toMatchObject({
      code: "engine-unavailable",
      outcome: "none",
      retryable: true,
      message: expect.stringContaining("MySQL: the connection has an open transaction"),
    });
    const waiting = locks.acquire(key);
    const [rows] = await only.query<RowDataPacket[]>("SELECT balance FROM account");
    expect(rows).toEqual([{ balance: 3 }]); // the program's transaction goes on
    await only.rollback();
    expect(await (await waiting).release()).toBe(true);
    await locks.close();
    await only.end();
  });

  test("does not arise from the driver where autocommit is off", async () => {
    await otherPool.query("SET GLOBAL autocommit = 0");
    const strict = createPool({ uri: server.url, connectionLimit: 2 });
    await otherPool.query("SET GLOBAL autocommit = 1");
    const threads = new Set<number>();
    strict.on("acquire", ({ threadId }) => threads.add(threadId));
    const locks = createLocks(mysql(strict));
    const lease = await locks.acquire(key);
    for (let turn = 0; turn < 5; turn += 1) {
      await locks.inspect(key);
      await locks.admin.list({ prefix: key });
      expect(await locks.checkFence(key, lease.fencingToken)).toBe("current");
      await locks.admin.nodes();
      await lease.extend();
    }
    expect(await there.tryAcquire(key)).toBeNull();
    const { fencingToken } = lease;
    expect(await there.admin.breakLock(key, { fencingToken, reason: "a test" })).toBe(true);
    expect((await locks.admin.audit({ key })).records).toHaveLength(1);
    const next = await locks.acquire(key);
    expect(await next.release()).toBe(true);
    expect(await there.tryAcquire(key)).not.toBeNull();
    expect(threads.size).toBeLessThanOrEqual(2); // no connection had to be replaced
    await locks.close();
    await strict.end();
  });

  test("is refused as the client of the driver", async () => {
    const connection = await otherPool.getConnection();
    expect(() => mysql(connection as unknown as MysqlClient)).toThrow(
      "one connection may have a transaction",
    );
    connection.release();
  });

  test("is what assertHeld needs: without one it rejects, because nothing is fenced", async () => {
    const lease = await here.acquire(key);
    const connection = await otherPool.getConnection();
    const refused = assertHeld(connection, lease);
    await expect(refused).rejects.toMatchObject({ code: "unsupported", key });
    await expect(refused).rejects.toThrow(`MySQL: assertHeld("${key}") needs an open transaction`);
    await connection.beginTransaction();
    await assertHeld(connection, lease);
    await connection.commit();
    await connection.query("SET autocommit = 0");
    await assertHeld(connection, lease);
    await connection.rollback();
    await connection.query("SET autocommit = 1");
    connection.release();
    await expect(assertHeld(otherPool as unknown as MysqlTransaction, lease)).rejects.toThrow(
      "a pool may use another connection",
    );
  });
});
