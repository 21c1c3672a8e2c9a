import { waitUntil } from "@holdfast/test-kit";
import { createLocks } from "holdfast";
import { mysql, type MysqlClient } from "holdfast/mysql";
import { createPool, type Pool, type PoolConnection, type RowDataPacket } from "mysql2/promise";
import { afterAll, beforeAll, expect, test } from "vitest";

import { onMariaDb, startMariaDb, type MariaDbServer } from "../../support/mariadb-server.ts";

onMariaDb("holdfast/mysql, with other transactions on its rows,", () => {
  let server: MariaDbServer;
  let pool: Pool;
  /** The errors of the server. */
  const errors: number[] = [];
  const recorded: MysqlClient = {
    query: (sql) => pool.query(sql),
    execute: (sql, values) =>
      pool.execute(sql, values).catch((error: unknown) => {
        errors.push((error as { errno: number }).errno);
        throw error;
      }),
  };

  beforeAll(async () => {
    server = await startMariaDb(["--innodb-flush-log-at-trx-commit=0", "--innodb-lock-wait-timeout=1"]);
    pool = createPool({ uri: server.url });
    await pool.query("CREATE TABLE heavy (id INT PRIMARY KEY)");
  });

  afterAll(async () => {
    await pool.end();
    await server.stop();
  });

  async function inTransaction(work: (connection: PoolConnection) => Promise<void>): Promise<void> {
    const connection = await pool.getConnection();
    try {
      await connection.beginTransaction();
      await work(connection);
      await connection.commit();
    } catch (error) {
      await connection.rollback();
      throw error;
    } finally {
      connection.release();
    }
  }

  async function isWaiting(): Promise<boolean> {
    const [rows] = await pool.query<RowDataPacket[]>("SHOW STATUS LIKE 'Innodb_row_lock_current_waits'");
    return Number(rows[0]?.["Value"]) > 0;
  }

  test("an acquire is repeated after a deadlock (1213)", async () => {
    const locks = createLocks(mysql(recorded));
    await locks.acquire("deadlock", { ttlMs: 100, renew: false });
    await waitUntil(async () => (await locks.inspect("deadlock")).holders.length === 0, "the lease expires");
    errors.length = 0;
    let lease: Promise<unknown> | undefined;
    await inTransaction(async (other) => {
      // The server rolls back the transaction that has changed fewer rows.
      await other.query("INSERT INTO heavy SELECT seq FROM seq_1_to_1000");
      await other.query("SELECT * FROM holdfast_holders WHERE k = 'deadlock' FOR UPDATE");
      lease = locks.acquire("deadlock");
      await waitUntil(isWaiting, "the acquire waits for the row of the last holder");
      await other.query("SELECT * FROM holdfast_locks WHERE k = 'deadlock' FOR UPDATE");
    });
    await lease;
    expect(errors).toContain(1213);
    await locks.close();
  });

  test("an acquire is repeated after a lock timeout (1205)", async () => {
    const locks = createLocks(mysql(recorded));
    await (await locks.acquire("timeout")).release();
    errors.length = 0;
    let lease: Promise<unknown> | undefined;
    await inTransaction(async (other) => {
      await other.query("SELECT * FROM holdfast_locks WHERE k = 'timeout' FOR UPDATE");
      lease = locks.acquire("timeout", { waitMs: 20_000 });
      await waitUntil(() => errors.length > 0, "the server ends the wait");
    });
    await lease;
    expect(new Set(errors)).toEqual(new Set([1205]));
    await locks.close();
  });

  test.each([[["FOUND_ROWS"]], [["-FOUND_ROWS"]]])(
    "one of many tries for a new key is granted, with the flags %j of the client",
    async (flags) => {
      const other = createPool({ uri: server.url, flags });
      const locks = createLocks(mysql(other));
      for (let round = 0; round < 20; round += 1) {
        const key = `new ${String(flags)} ${round}`;
        const leases = await Promise.all(Array.from({ length: 10 }, () => locks.tryAcquire(key)));
        expect(leases.filter((lease) => lease !== null)).toHaveLength(1);
      }
      await locks.close();
      await other.end();
    },
  );
});
