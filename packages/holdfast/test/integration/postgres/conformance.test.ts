import { postgres } from "holdfast/postgres";
import pg from "pg";
import postgresJs from "postgres";
import { afterAll, beforeAll, describe, test } from "vitest";

import { clientConformance, patient, wholeConformance } from "../../support/conformance.ts";
import { onPgBouncer, startPgBouncer, type PgBouncer } from "../../support/pgbouncer-server.ts";
import { onPostgres, startPostgres, type PostgresServer } from "../../support/postgres-server.ts";

let server: PostgresServer;

onPostgres("a driver with notifications, by postgres.js,", () => {
  let clients: [postgresJs.Sql, postgresJs.Sql];

  beforeAll(async () => {
    server = await startPostgres();
    const open = (): postgresJs.Sql => postgresJs(server.url, { max: 5, onnotice: () => undefined });
    clients = [open(), open()];
  });

  afterAll(async () => {
    await Promise.all(clients.map((client) => client.end()));
    await server.stop();
  });

  describe.concurrent("passes the conformance suite:", () => {
    wholeConformance({
      test,
      open: async () => {
        const [here, there] = clients.map((client) => postgres(client, { ...patient, listen: true }));
        return { driver: here as ReturnType<typeof postgres>, other: there };
      },
    });
  });
});

onPostgres("a driver whose leases are bound to a session, by a pool of pg,", () => {
  let pools: [pg.Pool, pg.Pool];

  beforeAll(async () => {
    server = await startPostgres();
    const open = (): pg.Pool => new pg.Pool({ connectionString: server.url, max: 5 });
    pools = [open(), open()];
  });

  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.end()));
    await server.stop();
  });

  describe.concurrent("passes the conformance suite:", () => {
    wholeConformance({
      test,
      open: async () => {
        const [here, there] = pools.map((pool) => postgres(pool, { ...patient, mode: "advisory" }));
        return { driver: here as ReturnType<typeof postgres>, other: there };
      },
    });
  });
});

onPgBouncer("a driver without notifications, by a pool of pg and PgBouncer in transaction mode,", () => {
  let pooler: PgBouncer;
  let pools: [pg.Pool, pg.Pool];

  beforeAll(async () => {
    server = await startPostgres();
    pooler = await startPgBouncer(server);
    const open = (): pg.Pool => new pg.Pool({ connectionString: pooler.url, max: 5 });
    pools = [open(), open()];
  });

  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.end()));
    await pooler.stop();
    await server.stop();
  });

  describe.concurrent("passes the conformance suite:", () => {
    clientConformance({
      test,
      open: async () => {
        const [here, there] = pools.map((pool) =>
          postgres(pool, { ...patient, schema: "locks_of_tenant_7" }),
        );
        return { driver: here as ReturnType<typeof postgres>, other: there };
      },
    });
  });
});
