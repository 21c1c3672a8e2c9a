import { hasPostgres } from "@holdfast/test-kit/engines";

import type pg from "pg";

import { describeWith } from "./servers.ts";

export { startPostgres, startStandby, type PostgresServer } from "@holdfast/test-kit/engines";

/** `describe` for tests that need PostgreSQL. */
export const onPostgres: ReturnType<typeof describeWith> = describeWith("PostgreSQL", hasPostgres);

/** Runs the work between BEGIN and COMMIT on one connection of the pool. */
export async function inTransaction<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const result = await work(client);
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  } finally {
    client.release();
  }
}
