import { createLocks, type Lease, type Locks } from "holdfast";
import { assertHeld, mysql, mysqlSchema } from "holdfast/mysql";
import { createPool, type Pool, type PoolConnection } from "mysql2/promise";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { onMariaDb, startMariaDb, type MariaDbServer } from "../../support/mariadb-server.ts";

onMariaDb("assertHeld", () => {
  let server: MariaDbServer;
  let pool: Pool;
  let here: Locks;
  let there: Locks;
  let key: string;

  beforeAll(async () => {
    server = await startMariaDb();
    pool = createPool({ uri: server.url });
    for (const statement of mysqlSchema()) {
      await pool.query(statement);
    }
  });

  afterAll(async () => {
    await pool.end();
    await server.stop();
  });

  beforeEach(() => {
    const options = { createSchema: false };
    [here, there] = [createLocks(mysql(pool, options)), createLocks(mysql(pool, options))];
    key = `account:${crypto.randomUUID()}`;
  });

  afterEach(async () => {
    await Promise.all([here.close(), there.close()]);
  });

  async function inTransaction<T>(work: (connection: PoolConnection) => Promise<T>): Promise<T> {
    const connection = await pool.getConnection();
    try {
      await connection.beginTransaction();
      const result = await work(connection);
      await connection.commit();
      return result;
    } catch (error) {
      await connection.rollback();
      throw error;
    } finally {
      connection.release();
    }
  }

  test("resolves for a lease that holds its key, and does not delay its extension", async () => {
    const lease = await here.acquire(key);
    await inTransaction(async (connection) => {
      await assertHeld(connection, lease);
      await lease.extend();
    });
  });

  test.each<[string, (lease: Lease) => Promise<unknown>]>([
    ["was released", (lease) => lease.release()],
    [
      "was broken",
      (lease) => there.admin.breakLock(key, { fencingToken: lease.fencingToken, reason: "test" }),
    ],
    [
      "was followed by another holder",
      async (lease) => {
        await lease.release();
        await there.acquire(key);
      },
    ],
  ])("rejects for a lease that %s", async (_, end) => {
    const lease = await here.acquire(key);
    await end(lease);
    const transaction = inTransaction((connection) => assertHeld(connection, lease));
    await expect(transaction).rejects.toMatchObject({ code: "lease-lost", key });
  });

  test.each<[string, (lease: Lease) => Promise<unknown>]>([
    ["expires", () => pool.query("UPDATE holdfast_holders SET expires_at = 0 WHERE k = ?", [key])],
    ["is released", (lease) => lease.release()],
    [
      "is broken",
      (lease) => there.admin.breakLock(key, { fencingToken: lease.fencingToken, reason: "test" }),
    ],
  ])("no other holder gets the key before the transaction ends, although the lease %s", async (_, end) => {
    const lease = await here.acquire(key, { renew: false });
    await inTransaction(async (connection) => {
      await assertHeld(connection, lease);
      await end(lease);
      expect(await there.tryAcquire(key)).toBeNull();
    });
    expect(await there.tryAcquire(key)).not.toBeNull();
  });

  test("a user with the rights that the page of the driver names can lock, read and fence", async () => {
    const { pathname } = new URL(server.url);
    const database = pathname.slice(1);
    await pool.query("CREATE USER program");
    await pool.query(`GRANT EXECUTE ON ${database}.* TO program`);
    await pool.query(`GRANT SELECT ON ${database}.holdfast_pins TO program`);
    const program = createPool({ uri: server.url.replace("root@", "program@") });
    const locks = createLocks(mysql(program, { createSchema: false }));
    const lease = await locks.acquire(key);
    await lease.extend();
    expect((await locks.admin.list({ prefix: key })).locks).toHaveLength(1);
    expect(await locks.checkFence(key, lease.fencingToken)).toBe("current");
    const connection = await program.getConnection();
    await connection.beginTransaction();
    await assertHeld(connection, lease);
    await connection.commit();
    connection.release();
    expect(await locks.admin.breakLock(key, { fencingToken: lease.fencingToken, reason: "a test" })).toBe(
      true,
    );
    expect((await locks.admin.audit({ key })).records).toHaveLength(1);
    await locks.close();
    await program.end();
  });
});
