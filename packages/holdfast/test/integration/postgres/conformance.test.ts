import { postgres, type PostgresClient, type PostgresOptions } from "holdfast/postgres";
import { driverConformance } from "holdfast/testing";
import { CompiledQuery, Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import postgresJs from "postgres";
import { afterAll, beforeAll, describe, test } from "vitest";

import { onPostgres, startPostgres, type PostgresServer } from "../../support/postgres-server.ts";

interface Setup {
  readonly options?: PostgresOptions;
  open(url: string): { readonly client: PostgresClient; close(): Promise<unknown> };
}

const setups: Readonly<Record<string, Setup>> = {
  "a Pool of pg": {
    open(url) {
      const pool = new pg.Pool({ connectionString: url, max: 5 });
      return { client: pool, close: () => pool.end() };
    },
  },
  "postgres.js with notifications": {
    options: { listen: true },
    open(url) {
      const sql = postgresJs(url, { max: 5, onnotice: () => undefined });
      return { client: sql, close: () => sql.end() };
    },
  },
  "a query function over Kysely, in another schema": {
    options: { schema: "locks_of_tenant_7" },
    open(url) {
      const db = new Kysely<object>({
        dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: url, max: 5 }) }),
      });
      const client: PostgresClient = async (sql, params) =>
        (await db.executeQuery(CompiledQuery.raw(sql, [...params]))).rows as object[];
      return { client, close: () => db.destroy() };
    },
  },
};

onPostgres("PostgreSQL", () => {
  let server: PostgresServer;

  beforeAll(async () => {
    server = await startPostgres();
  });

  afterAll(async () => {
    await server.stop();
  });

  for (const [name, { open, options }] of Object.entries(setups)) {
    describe.concurrent(`${name} passes the conformance suite:`, () => {
      const opened: ReturnType<Setup["open"]>[] = [];

      beforeAll(() => {
        opened.push(open(server.url), open(server.url));
      });

      afterAll(async () => {
        await Promise.all(opened.map((each) => each.close()));
      });

      driverConformance({
        test,
        open: async () => {
          const [here, there] = opened.map(({ client }) => client) as [PostgresClient, PostgresClient];
          return { driver: postgres(here, options), other: postgres(there, options) };
        },
      });
    });
  }
});
