import { Kysely, MysqlDialect, PostgresDialect, type MysqlPool as KyselyPool } from "kysely";
import { createLocks } from "holdfast";
import { optimistic, OptimisticConflictError, versionedRow, type RowClient } from "holdfast/optimistic";
import { memory } from "holdfast/memory";
import { createPool as createCallbackPool } from "mysql2";
import { createPool, type Pool as MysqlPool } from "mysql2/promise";
import pg from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { onMariaDb, startMariaDb, type MariaDbServer } from "../support/mariadb-server.ts";
import { onPostgres, startPostgres, type PostgresServer } from "../support/postgres-server.ts";

interface Stock {
  article: string;
  units: number;
  version: number;
}

const table =
  "CREATE TABLE stock (article VARCHAR(20) PRIMARY KEY, units INT NOT NULL, version INT NOT NULL)";
const writers = 32;
const initial = 100;

class SoldOutError extends Error {}

/** 32 writers, each of which takes units until the stock is sold out. @returns the units that each has taken */
async function sellOut(
  client: RowClient,
  takes: (take: () => Promise<number>) => Promise<number>,
): Promise<number[]> {
  const sell = async (_: unknown, writer: number): Promise<number> => {
    const units = (writer % 3) + 1;
    const update = versionedRow<Stock>(client, {
      table: "stock",
      key: { article: "hammer" },
      change: (row) => {
        if (row.units < units) throw new SoldOutError();
        return { units: row.units - units };
      },
    });
    for (let taken = 0; ; taken += units) {
      const take = (): Promise<number> => optimistic(update, { attempts: 1_000 }).then(() => units);
      const isTaken = await takes(take).catch((error: unknown) => {
        if (error instanceof SoldOutError) return 0;
        throw error;
      });
      if (isTaken === 0) return taken;
    }
  };
  return Promise.all(Array.from({ length: writers }, sell));
}

interface Database {
  query(text: string): Promise<Stock[]>;
  clients(): Readonly<Record<string, RowClient>>;
}

function withoutOverselling(names: readonly string[], database: () => Database): void {
  const reset = async (): Promise<void> => {
    await database().query("DELETE FROM stock");
    await database().query(`INSERT INTO stock VALUES ('hammer', ${initial}, 1)`);
  };
  const present = async (): Promise<Stock> => (await database().query("SELECT * FROM stock"))[0] as Stock;

  test.each(names)("32 writers take the stock without overselling, with %s", async (name) => {
    await reset();
    const taken = await sellOut(database().clients()[name] as RowClient, (take) => take());
    const { units, version } = await present();
    expect(units).toBe(0);
    expect(taken.reduce((sum, each) => sum + each, 0)).toBe(initial);
    expect(version).toBeGreaterThan(initial / 3);
  });

  test.each(names)("the same with a lock needs one try for each, with %s", async (name) => {
    await reset();
    const locks = createLocks(memory());
    const client = database().clients()[name] as RowClient;
    const taken = await sellOut(client, (take) => locks.withLock("stock:hammer", { waitMs: 60_000 }, take));
    expect(taken.reduce((sum, each) => sum + each, 0)).toBe(initial);
    await locks.close();
  });

  test.each(names)("reports conflicts and missing rows, with %s", async (name) => {
    await reset();
    const client = database().clients()[name] as RowClient;
    const change = async (): Promise<Partial<Stock>> => {
      await database().query("UPDATE stock SET version = version + 1");
      return { units: 1 };
    };
    const conflicting = versionedRow<Stock>(client, { table: "stock", key: { article: "hammer" }, change });
    const options = { attempts: 3, backoff: () => 0 };
    await expect(optimistic(conflicting, options)).rejects.toThrow(OptimisticConflictError);
    expect(await present()).toEqual({ article: "hammer", units: initial, version: 4 });
    const missing = versionedRow<Stock>(client, { table: "stock", key: { article: "saw" }, change });
    await expect(optimistic(missing)).rejects.toThrow("No row of stock has the key (article)");
  });

  test.each(names)("returns the new row, and may change nothing but the version, with %s", async (name) => {
    await reset();
    const client = database().clients()[name] as RowClient;
    const update = { table: "stock", key: { article: "hammer" } };
    const sold = await optimistic(versionedRow<Stock>(client, { ...update, change: () => ({ units: 7 }) }));
    expect(sold).toMatchObject({ article: "hammer", units: 7 });
    await optimistic(versionedRow<Stock>(client, { ...update, change: () => ({}) }));
    expect(await present()).toEqual({ article: "hammer", units: 7, version: 3 });
  });
}

onPostgres("versionedRow, on PostgreSQL,", () => {
  let server: PostgresServer;
  let pool: pg.Pool;
  let sql: postgres.Sql;
  let kysely: Kysely<{ stock: Stock }>;

  beforeAll(async () => {
    server = await startPostgres();
    pool = new pg.Pool({ connectionString: server.url, max: 8 });
    sql = postgres(server.url, { max: 8 });
    kysely = new Kysely({ dialect: new PostgresDialect({ pool }) });
    await pool.query(table);
  });

  afterAll(async () => {
    await sql?.end();
    await pool?.end();
    await server?.stop();
  });

  withoutOverselling(["pg", "postgres", "Kysely"], () => ({
    query: async (text) => (await pool.query<Stock>(text)).rows,
    clients: () => ({ pg: pool, postgres: sql, Kysely: kysely }),
  }));

  test("a serialization failure counts as a conflict", async () => {
    await pool.query("DELETE FROM stock");
    await pool.query("INSERT INTO stock VALUES ('hammer', 5, 1)");
    let isFirst = true;
    const failing: RowClient = {
      async query(text: string, values: unknown[]) {
        if (isFirst && text.startsWith("UPDATE")) {
          isFirst = false;
          throw Object.assign(new Error("could not serialize access"), { code: "40001" });
        }
        return pool.query(text, values);
      },
    };
    const update = versionedRow<Stock>(failing, {
      table: "public.stock",
      key: { article: "hammer" },
      change: ({ units }) => ({ units: units - 1 }),
    });
    expect(await optimistic(update, { attempts: 2 })).toMatchObject({ units: 4 });
  });
});

onMariaDb("versionedRow, on MariaDB,", () => {
  let server: MariaDbServer;
  let pool: MysqlPool;
  let kysely: Kysely<{ stock: Stock }>;

  beforeAll(async () => {
    server = await startMariaDb();
    pool = createPool({ uri: server.url, connectionLimit: 8 });
    const callbackPool = createCallbackPool({ uri: server.url, connectionLimit: 8 });
    kysely = new Kysely({ dialect: new MysqlDialect({ pool: callbackPool as unknown as KyselyPool }) });
    await pool.query(table);
  });

  afterAll(async () => {
    await kysely?.destroy();
    await pool?.end();
    await server?.stop();
  });

  withoutOverselling(["mysql2", "Kysely"], () => ({
    query: async (text) => (await pool.query(text))[0] as Stock[],
    clients: () => ({ mysql2: pool, Kysely: kysely }),
  }));
});

describe("versionedRow", () => {
  const client: RowClient = { query: async () => ({ rows: [{ id: 1 }], rowCount: 0 }) };
  const valid = { table: "stock", key: { id: 1 }, change: () => ({}) };

  test.each([
    [{} as RowClient, valid, "Expected `client` to be a client of pg, postgres, mysql2/promise or Kysely"],
    [client, { ...valid, table: "stock; DROP TABLE stock" }, "Expected `table` to be a string of letters"],
    [client, { ...valid, key: { "id = 1 OR id": 1 } }, "Expected `column of key` to be a string of letters"],
    [client, { ...valid, key: {} }, "Expected `key` to be an object with at least one column"],
    [client, { ...valid, version: "a b" }, "Expected `version` to be a string of letters"],
    [client, { ...valid, where: 1 }, "Unknown option `where`"],
  ])("refuses an invalid value: %#", (given, options, message) => {
    expect(() => versionedRow(given, options as typeof valid)).toThrow(message);
  });

  test("refuses a column that is no plain name, and a row without a version", async () => {
    await expect(optimistic(versionedRow(client, valid))).rejects.toThrow(
      "The row of stock has no column version",
    );
    const update = versionedRow<Record<string, unknown>>(client, {
      ...valid,
      version: "id",
      change: () => ({ "a = 1, b": 2 }),
    });
    await expect(optimistic(update)).rejects.toThrow("Expected `column of change` to be a string of letters");
  });
});
