import { fenced } from "holdfast/fencing";
import { createPool as createMysqlPool, type Pool as MysqlPool, type ResultSetHeader } from "mysql2/promise";
import pg from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { onMariaDb, startMariaDb, type MariaDbServer } from "../support/mariadb-server.ts";
import { onPostgres, startPostgres, type PostgresServer } from "../support/postgres-server.ts";

const table =
  "CREATE TABLE account (id INT PRIMARY KEY, balance INT NOT NULL, fence BIGINT NOT NULL DEFAULT 0)";

describe("fenced", () => {
  test("makes the parts of an UPDATE for both styles of placeholders", () => {
    expect(fenced(17n)).toEqual({
      assignment: "fence = CAST(? AS SIGNED)",
      condition: "fence <= CAST(? AS SIGNED)",
      parameter: "17",
    });
    expect(fenced(17n, { placeholder: "$3", column: "last_token" })).toEqual({
      assignment: "last_token = CAST($3 AS BIGINT)",
      condition: "last_token <= CAST($3 AS BIGINT)",
      parameter: "17",
    });
  });

  test.each([
    [() => fenced(-1n), "Expected `fencingToken` to be a bigint, not negative, got -1 (bigint)"],
    [
      () => fenced(2n ** 63n),
      "Expected `fencingToken` to be a bigint, at most 2^63 − 1, got 9223372036854775808",
    ],
    [() => fenced(1n, { column: "fence = 0 OR fence" }), "Expected `column` to be a string of letters"],
    [
      () => fenced(1n, { placeholder: "$0" }),
      'Expected `placeholder` to be a string "?" or "$1" to "$65535"',
    ],
    [() => fenced(1n, { name: "fence" } as object), "Unknown option `name`"],
  ])("refuses an invalid value: %#", (call, message) => {
    expect(call).toThrow(message);
  });
});

/** Writes the balance of account 1, guarded by a token. @returns the number of written rows */
type Write = (balance: number, fencingToken: bigint) => Promise<number>;

function refusesLateHolders(write: () => Write, balance: () => Promise<number>): void {
  test("refuses a smaller token than the row has seen", async () => {
    expect([await write()(100, 33n), await write()(200, 34n), await write()(300, 33n)]).toEqual([1, 1, 0]);
    expect(await balance()).toBe(200);
  });

  test("accepts further writes of the same holder, also equal ones", async () => {
    expect([await write()(300, 40n), await write()(300, 40n), await write()(301, 40n)]).toEqual([1, 1, 1]);
  });

  test("compares tokens exactly, beyond the numbers of a double", async () => {
    const large = 2n ** 62n + 1n;
    expect(await write()(1, large)).toBe(1);
    expect(await write()(2, large - 1n)).toBe(0);
    expect(await write()(3, 2n ** 63n - 1n)).toBe(1);
  });
}

onPostgres("fenced, on PostgreSQL,", () => {
  let server: PostgresServer;
  let pool: pg.Pool;

  beforeAll(async () => {
    server = await startPostgres();
    pool = new pg.Pool({ connectionString: server.url, max: 4 });
    await pool.query(table);
    await pool.query("INSERT INTO account VALUES (1, 0)");
  });

  afterAll(async () => {
    await pool?.end();
    await server?.stop();
  });

  refusesLateHolders(
    () => async (balance, fencingToken) => {
      const fence = fenced(fencingToken, { placeholder: "$3" });
      const statement = `UPDATE account SET balance = $1, ${fence.assignment} WHERE id = $2 AND ${fence.condition}`;
      return (await pool.query(statement, [balance, 1, fence.parameter])).rowCount ?? 0;
    },
    async () => (await pool.query<{ balance: number }>("SELECT balance FROM account")).rows[0]?.balance ?? -1,
  );

  test("guards a statement of postgres.js", async () => {
    const sql = postgres(server.url, { max: 1 });
    const counts: number[] = [];
    await pool.query("INSERT INTO account VALUES (2, 0)");
    for (const token of [8n, 9n, 8n]) {
      const fence = fenced(token, { placeholder: "$3" });
      const statement = `UPDATE account SET balance = $1, ${fence.assignment} WHERE id = $2 AND ${fence.condition}`;
      counts.push((await sql.unsafe(statement, [5, 2, fence.parameter])).count);
    }
    expect(counts).toEqual([1, 1, 0]);
    await sql.end();
  });
});

onMariaDb("fenced, on MariaDB,", () => {
  let server: MariaDbServer;
  let pool: MysqlPool;

  beforeAll(async () => {
    server = await startMariaDb();
    pool = createMysqlPool({ uri: server.url, connectionLimit: 4 });
    await pool.query(table);
    await pool.query("INSERT INTO account (id, balance) VALUES (1, 0)");
  });

  afterAll(async () => {
    await pool?.end();
    await server?.stop();
  });

  refusesLateHolders(
    () => async (balance, fencingToken) => {
      const fence = fenced(fencingToken);
      const statement = `UPDATE account SET balance = ?, ${fence.assignment} WHERE id = ? AND ${fence.condition}`;
      const parameters = [balance, fence.parameter, 1, fence.parameter];
      return (await pool.execute<ResultSetHeader>(statement, parameters))[0].affectedRows;
    },
    async () => {
      const [rows] = await pool.query("SELECT balance FROM account");
      return (rows as { balance: number }[])[0]?.balance ?? -1;
    },
  );
});
