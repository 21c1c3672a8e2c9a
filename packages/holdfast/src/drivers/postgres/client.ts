import { invalidValue } from "../../option-checks.ts";

/** Runs one statement with text parameters, outside of a transaction. @returns its rows as objects */
export type PostgresQuery = (sql: string, params: string[]) => PromiseLike<readonly object[]>;

/** A `Pool` of `pg`, or another object with its `query`. */
export interface PgClient {
  query(sql: string, params: string[]): Promise<{ readonly rows: object[] }>;
}

/** An instance of `postgres` (postgres.js), or one of its transactions. */
export interface PostgresJsClient {
  unsafe(sql: string, params: string[]): PromiseLike<readonly object[]>;
}

export type PostgresClient = PgClient | PostgresJsClient | PostgresQuery;

/** The one way in which statements are sent, for a client of any shape. @throws {TypeError} */
export function queryOf(name: string, client: PostgresClient): PostgresQuery {
  if (isObject(client) && "unsafe" in client && typeof client.unsafe === "function") {
    return (sql, params) => client.unsafe(sql, params);
  } else if (isObject(client) && "query" in client && typeof client.query === "function") {
    return async (sql, params) => (await client.query(sql, params)).rows;
  } else if (typeof client === "function") {
    return client;
  }
  const expected = "a Pool of pg, an instance of postgres, or a function (sql, params) => Promise<rows>";
  throw invalidValue(name, expected, client);
}

/** An instance of postgres.js is a function. */
function isObject(value: unknown): boolean {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

/** Calls one function of the schema, whose argument and result are JSON. */
export async function callFunction(query: PostgresQuery, name: string, request: object): Promise<unknown> {
  const [row] = await query(`SELECT ${name}($1) AS reply`, [JSON.stringify(request)]);
  return JSON.parse((row as { reply: string }).reply);
}
