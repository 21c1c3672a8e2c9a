import { createLocks } from "holdfast";
import { mysql } from "holdfast/mysql";
import { createPool, type PoolConnection, type RowDataPacket } from "mysql2/promise";
import { expect, test } from "vitest";

import { onMariaDb, startMariaDb } from "../../support/mariadb-server.ts";

const tasks = 4;
/** Of 300 calls, each interrupted after a random time, MariaDB rolls back about one without an error. */
const callsOfATask = 1_000;

onMariaDb("a procedure that KILL QUERY interrupts", () => {
  test("reports a release only if its transaction was committed", async () => {
    const server = await startMariaDb();
    const pool = createPool({ uri: server.url, connectionLimit: 3 * tasks });
    const locks = createLocks(mysql(pool));
    await locks.inspect("any"); // creates the tables

    /** The token of the grant; undefined: there is none. */
    async function tokenOf(key: string): Promise<string | undefined> {
      const sql = "SELECT HEX(token) AS token FROM holdfast_holders WHERE k = ?";
      const [rows] = await pool.query<RowDataPacket[]>(sql, [key]);
      return rows[0]?.["token"] as string | undefined;
    }

    /** @returns whether the reply says that the grant was in force; undefined: the call has failed */
    async function interruptedRelease(connection: PoolConnection, key: string): Promise<boolean | undefined> {
      const { threadId } = connection;
      const kill = (): unknown => pool.query(`KILL QUERY ${threadId}`).catch(() => undefined); // it may have been destroyed
      const timer = setTimeout(kill, 2 * Math.random());
      try {
        const call = `CALL holdfast6_release('${key}', UNHEX('${await tokenOf(key)}'))`;
        const [results] = await connection.query<RowDataPacket[][]>(call);
        return results[0]?.[0]?.["held"] === 1;
      } catch {
        return undefined;
      } finally {
        clearTimeout(timer);
      }
    }

    let failures = 0;
    async function interruptReleases(key: string): Promise<void> {
      let connection = await pool.getConnection();
      for (let call = 0; call < callsOfATask; call += 1) {
        const lease = await locks.acquire(key, { renew: false });
        const isReleased = await interruptedRelease(connection, key);
        if (isReleased === undefined) {
          failures += 1;
          connection.destroy(); // its transaction may be open
          connection = await pool.getConnection();
          await lease.release();
        } else {
          expect(isReleased).toBe(true);
          expect(await tokenOf(key)).toBeUndefined();
        }
      }
      connection.destroy();
    }

    await Promise.all(Array.from({ length: tasks }, (_, task) => interruptReleases(`task ${task}`)));
    expect(failures).toBeGreaterThan(0); // or no interruption met a call
    await locks.close();
    await pool.end();
    await server.stop();
  });
});
