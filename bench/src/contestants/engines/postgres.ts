import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Contestant } from "../contestant.ts";

export const retryWithinMs = 20;
export const poolText = "10 connections";

/** The pool of each contestant, with the defaults of `pg`. */
export function poolOf(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url });
  pool.on("error", () => {});
  return pool;
}

/** The lock of a session. A waiter and a holder each need a connection of their own. */
export const advisoryLock: Contestant<string> = {
  settings: `pg_advisory_lock and pg_advisory_unlock on one connection of a Pool, ${poolText}`,
  open: async (url) => {
    const pool = poolOf(url);
    return {
      acquire: async (key) => {
        const client = await pool.connect();
        await orDiscard(client, "SELECT pg_advisory_lock(hashtextextended($1, 0))", [key]);
        return async () => {
          await orDiscard(client, "SELECT pg_advisory_unlock(hashtextextended($1, 0))", [key]);
          client.release();
        };
      },
      hold: null,
    };
  },
};

const table = `
  SELECT pg_advisory_xact_lock(0);
  CREATE TABLE IF NOT EXISTS by_hand (key text PRIMARY KEY, holder text, ends timestamptz NOT NULL);
`;
const insert = "INSERT INTO by_hand VALUES ($1, NULL, '-infinity') ON CONFLICT DO NOTHING";
const select =
  "SELECT holder IS NULL OR ends < clock_timestamp() AS free FROM by_hand WHERE key = $1 FOR UPDATE";
const update =
  "UPDATE by_hand SET holder = $2, ends = clock_timestamp() + $3 * interval '1 ms' WHERE key = $1";
const release = "UPDATE by_hand SET holder = NULL WHERE key = $1 AND holder = $2";

/** A row with its holder and its end, as programs write it by hand: a short transaction for each attempt, and a random retry. */
export const postgresPoller: Contestant<string> = {
  settings: `a row, SELECT FOR UPDATE and UPDATE in a transaction, retries after 0 to ${retryWithinMs} ms; a Pool, ${poolText}`,
  open: async (url) => {
    const pool = poolOf(url);
    await pool.query(table);
    return {
      acquire: async (key, ttlMs) => {
        const token = randomUUID();
        await pool.query(insert, [key]);
        while (!(await attempt(pool, { key, token, ttlMs }))) await sleep(Math.random() * retryWithinMs);
        return () => pool.query(release, [key, token]);
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

async function attempt(pool: pg.Pool, { key, token, ttlMs }: Attempt): Promise<boolean> {
  const client = await pool.connect();
  await orDiscard(client, "BEGIN");
  const { rows } = await orDiscard(client, select, [key]);
  const { free } = rows[0] as { free: boolean };
  if (free) await orDiscard(client, update, [key, token, ttlMs]);
  // A transaction that only locked a row would wait for the disk at its commit.
  await orDiscard(client, free ? "COMMIT" : "ROLLBACK");
  client.release();
  return free;
}

/** Runs a statement. If the statement fails, the connection is closed, so that it keeps no lock. */
async function orDiscard(
  client: pg.PoolClient,
  sql: string,
  values: readonly unknown[] = [],
): Promise<pg.QueryResult> {
  try {
    return await client.query(sql, [...values]);
  } catch (error) {
    client.release(true);
    throw error;
  }
}
