import { createLocks, type Locks } from "holdfast";
import { postgres } from "holdfast/postgres";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";

import { onPgBouncer, startPgBouncer, type PgBouncerOptions } from "../../support/pgbouncer-server.ts";
import { startPostgres, type PostgresServer } from "../../support/postgres-server.ts";

onPgBouncer('`mode: "advisory"` with a pooler', () => {
  let server: PostgresServer;

  beforeAll(async () => {
    server = await startPostgres();
  });

  afterAll(() => server.stop());

  async function withPooler<T>(options: PgBouncerOptions, use: (locks: Locks) => Promise<T>): Promise<T> {
    const pooler = await startPgBouncer(server, options);
    const pool = new pg.Pool({ connectionString: pooler.url, max: 3 });
    const locks = createLocks(postgres(pool, { mode: "advisory" }));
    try {
      return await use(locks);
    } finally {
      await locks.close();
      await pool.end();
      await pooler.stop();
    }
  }

  test.each([true, false])("is refused in transaction mode (round robin: %s)", async (roundRobin) => {
    await withPooler({ roundRobin }, async (locks) => {
      for (let call = 0; call < 2; call += 1) {
        await expect(locks.acquire("key", { waitMs: Infinity })).rejects.toMatchObject({
          code: "unsupported",
          message: expect.stringContaining("a pooler in transaction mode is between"),
        });
      }
    });
  });

  test("works in session mode", async () => {
    await withPooler({ mode: "session", poolSize: 20 }, async (locks) => {
      const lease = await locks.acquire("key", { renew: false });
      await lease.extend();
      await lease.extend();
      expect(await lease.release()).toBe(true);
    });
  });
});
