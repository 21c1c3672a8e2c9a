import type { RowClient } from "holdfast/optimistic";
import { createPool } from "mysql2/promise";
import pg from "pg";

export interface StockRow {
  readonly article: number;
  readonly units: number;
  readonly version: number;
}

/** The table `holdfast_stock` of a database, with a connection for each writer. */
export interface StockTable extends AsyncDisposable {
  readonly client: RowClient;
  /** Creates the table again, with the same number of units of each article. */
  fill(articles: number, units: number): Promise<void>;
  /** The units of all articles, and the units of the emptiest one. */
  remaining(): Promise<{ total: number; least: number }>;
}

const create =
  "CREATE TABLE holdfast_stock (article INT PRIMARY KEY, units INT NOT NULL, version INT NOT NULL)";
const drop = "DROP TABLE IF EXISTS holdfast_stock";
const sum = "SELECT SUM(units) AS total, MIN(units) AS least FROM holdfast_stock";

export function openTable(url: string, connections: number): StockTable {
  const { client, query, end } = url.startsWith("postgres")
    ? onPostgres(url, connections)
    : onMysql(url, connections);
  return {
    client,
    async fill(articles, units) {
      await query(drop);
      await query(create);
      const rows = Array.from({ length: articles }, (_, article) => `(${article}, ${units}, 1)`);
      await query(`INSERT INTO holdfast_stock VALUES ${rows.join(", ")}`);
    },
    async remaining() {
      const [row] = (await query(sum)) as { total: unknown; least: unknown }[];
      return { total: Number(row?.total), least: Number(row?.least) };
    },
    async [Symbol.asyncDispose]() {
      await query(drop);
      await end();
    },
  };
}

interface Database {
  readonly client: RowClient;
  readonly query: (text: string) => Promise<unknown>;
  readonly end: () => Promise<void>;
}

function onPostgres(connectionString: string, max: number): Database {
  const pool = new pg.Pool({ connectionString, max });
  pool.on("error", () => undefined); // an idle connection that ends; the next query reports the failure
  return { client: pool, query: async (text) => (await pool.query(text)).rows, end: () => pool.end() };
}

function onMysql(uri: string, connectionLimit: number): Database {
  const pool = createPool({ uri, connectionLimit });
  return { client: pool, query: async (text) => (await pool.query(text))[0], end: () => pool.end() };
}
