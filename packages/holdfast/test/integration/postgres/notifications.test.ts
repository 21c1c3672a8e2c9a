import { waitUntil } from "@holdfast/test-kit";
import { createLocks, LeaseLostError, type Locks } from "holdfast";
import { postgres, type PostgresOptions } from "holdfast/postgres";
import pg from "pg";
import postgresJs from "postgres";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import { onPgBouncer, startPgBouncer, type PgBouncer } from "../../support/pgbouncer-server.ts";
import { startPostgres, type PostgresServer } from "../../support/postgres-server.ts";

onPgBouncer("notifications", () => {
  let server: PostgresServer;
  let pooler: PgBouncer;
  const closing: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    server = await startPostgres();
    pooler = await startPgBouncer(server);
  });

  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) {
      await close();
    }
  });

  afterAll(async () => {
    await pooler.stop();
    await server.stop();
  });

  const clients = {
    pg: (url: string) => {
      const pool = new pg.Pool({ connectionString: url, max: 3 });
      closing.push(() => pool.end());
      return pool;
    },
    "postgres.js": (url: string) => {
      const sql = postgresJs(url, { max: 3, prepare: false, onnotice: () => undefined });
      closing.push(() => sql.end());
      return sql;
    },
  };

  function open(
    client: keyof typeof clients,
    url: string,
    options: PostgresOptions = { listen: true },
  ): Locks {
    const locks = createLocks(postgres(clients[client](url), options));
    closing.push(() => locks.close());
    return locks;
  }

  const stateOf = async (locks: Locks): Promise<string | undefined> =>
    (await locks.admin.nodes())[0]?.notifications;

  describe.each(["pg", "postgres.js"] as const)("of %s", (client) => {
    test("arrive on a connection of their own, and report a break at once", async () => {
      const [here, there] = [open(client, server.url), open(client, server.url, {})];
      await waitUntil(async () => (await stateOf(here)) === "verified", "notifications arrive");
      expect(await stateOf(there)).toBe("unavailable");
      const lease = await here.acquire(`${client}:broken`);
      const lost = new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
      await there.admin.breakLock(lease.key, { fencingToken: lease.fencingToken, reason: "maintenance" });
      await lost;
      expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
      expect(lease.signal.reason).toMatchObject({ reason: "broken", cause: { message: "maintenance" } });
    });

    test("do not arrive by a pooler in transaction mode, and waiters poll", async () => {
      const [here, there] = [open(client, pooler.url), open(client, server.url)];
      const holder = await there.acquire(`${client}:pooled`);
      const waiting = here.acquire(holder.key);
      await waitUntil(async () => (await there.inspect(holder.key)).waiterCount === 1, "the other waits");
      await holder.release();
      await (await waiting).release();
      expect(await stateOf(here)).toBe("unverified");
    });
  });

  test("use one channel for each driver, which ends with it", async () => {
    const channels = async (): Promise<number> => {
      const { rows } = await admin.query<{ count: number }>(
        "SELECT count(*)::integer AS count FROM pg_stat_activity WHERE query LIKE 'LISTEN%'",
      );
      return rows[0]?.count as number;
    };
    const admin = clients.pg(server.url);
    const locks = createLocks(postgres(clients.pg(server.url), { listen: true }));
    await waitUntil(async () => (await channels()) === 1, "the driver listens");
    await locks.close();
    await waitUntil(async () => (await channels()) === 0, "the connection is closed");
  });
});
