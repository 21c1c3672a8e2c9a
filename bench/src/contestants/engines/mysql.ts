import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createPool, type Pool, type PoolConnection } from "mysql2/promise";
import type { Contestant } from "../contestant.ts";
import { poolText, retryWithinMs } from "./postgres.ts";

const waitS = 86_400;

/** The lock of a session. A waiter and a holder each need a connection of their own. */
export const getLock: Contestant<string> = {
  settings: `GET_LOCK and RELEASE_LOCK on one connection of a pool of mysql2, ${poolText}`,
  open: async (url) => {
    const pool = createPool({ uri: url });
    return {
      acquire: async (key) => {
        const connection = await pool.getConnection();
        const [rows] = await orDiscard(connection, "SELECT GET_LOCK(?, ?) AS granted", [key, waitS]);
        if ((rows as [{ granted: number }])[0].granted !== 1) {
          connection.destroy();
          throw new Error("GET_LOCK did not grant the lock");
        }
        return async () => {
          await orDiscard(connection, "DO RELEASE_LOCK(?)", [key]);
          connection.release();
        };
      },
      hold: null,
    };
  },
};

const table =
  "CREATE TABLE IF NOT EXISTS by_hand (k VARBINARY(255) PRIMARY KEY, holder CHAR(36), ends DATETIME(6) NOT NULL)";
const insert = "INSERT IGNORE INTO by_hand VALUES (?, NULL, '1970-01-01')";
const select = "SELECT holder IS NULL OR ends < UTC_TIMESTAMP(6) AS free FROM by_hand WHERE k = ? FOR UPDATE";
const update =
  "UPDATE by_hand SET holder = ?, ends = UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND WHERE k = ?";
const release = "UPDATE by_hand SET holder = NULL WHERE k = ? AND holder = ?";

/** A row with its holder and its end, as programs write it by hand: a short transaction for each attempt, and a random retry. */
export const mysqlPoller: Contestant<string> = {
  settings: `a row, SELECT FOR UPDATE and UPDATE in a transaction, retries after 0 to ${retryWithinMs} ms; a pool of mysql2, ${poolText}`,
  open: async (url) => {
    const pool = createPool({ uri: url });
    await pool.query(table);
    return {
      acquire: async (key, ttlMs) => {
        const token = randomUUID();
        await pool.execute(insert, [key]);
        while (!(await attempt(pool, { key, token, ttlMs }))) await sleep(Math.random() * retryWithinMs);
        return () => pool.execute(release, [key, token]);
      },
      hold: null,
    };
  },
};

interface Attempt {
  readonly key: string;
  readonly token: string;
  readonly ttlMs: number;
}

async function attempt(pool: Pool, { key, token, ttlMs }: Attempt): Promise<boolean> {
  const connection = await pool.getConnection();
  await orDiscard(connection, "BEGIN");
  const [rows] = await orDiscard(connection, select, [key]);
  const free = (rows as [{ free: number }])[0].free === 1;
  if (free) await orDiscard(connection, update, [token, ttlMs, key]);
  await orDiscard(connection, free ? "COMMIT" : "ROLLBACK");
  connection.release();
  return free;
}

/** Runs a statement. If the statement fails, the connection is closed, so that it keeps no lock. */
async function orDiscard(
  connection: PoolConnection,
  sql: string,
  values: (string | number)[] = [],
): Promise<readonly [unknown, unknown]> {
  try {
    return values.length === 0 ? await connection.query(sql) : await connection.execute(sql, values);
  } catch (error) {
    connection.destroy();
    throw error;
  }
}
