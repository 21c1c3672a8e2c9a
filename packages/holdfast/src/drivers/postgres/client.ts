import { invalidValue } from "../../option-checks.ts";
import { isInTransaction, isOfConnection } from "./errors.ts";

/** Runs one statement with text parameters. @returns its rows as objects */
export type PostgresQuery = (sql: string, params: string[]) => PromiseLike<readonly object[]>;

/** A `Pool` of `pg`, or another object with its `query`. A `Client` is one connection, and is refused. */
export interface PgPool {
  query(sql: string, params: string[]): Promise<{ readonly rows: object[] }>;
  readonly escapeLiteral?: never;
}

/** A `Client` of `pg`, also one of a `Pool`. A `Pool` itself is refused, because each statement may get another connection. */
export interface PgClient {
  query(sql: string, params: string[]): Promise<{ readonly rows: object[] }>;
  readonly totalCount?: never;
}

export interface PostgresJsStatement {
  /** The rows as arrays of bytes. */
  raw(): PromiseLike<readonly object[]>;
}

/** An instance of `postgres` (postgres.js). A transaction and a reserved connection are refused. */
export interface PostgresJs {
  unsafe(sql: string, params: string[]): PostgresJsStatement;
  readonly savepoint?: never;
  readonly release?: never;
}

/** A transaction of postgres.js. */
export interface PostgresJsTransaction {
  unsafe(sql: string, params: string[]): PostgresJsStatement;
  readonly begin?: never;
}

/** The clients of `postgres()`, which run each statement outside of a transaction. */
export type PostgresClient = PgPool | PostgresJs | PostgresQuery;

/** The clients of `assertHeld()`, which run statements within the caller's transaction. */
export type PostgresTransaction = PgClient | PostgresJsTransaction | PostgresQuery;

/** A `Pool` or a `Client` of `pg`. */
interface OfPg {
  query(statement: object): Promise<{ readonly rows: object[] }>;
}

/** All values as texts, whatever parsers the program has set. */
const types = { getTypeParser: () => String };

/**
 * How often a statement is sent at once, if connections that a program left with other rights refuse it. A standby refuses each statement
 * in the same way, and `pg` opens a new connection for each try, so there are few.
 */
const minTries = 3;

/**
 * The one way in which the driver sends statements, for a client of any shape. A connection with an open transaction refuses a statement,
 * and the pool has others: `pg` closes a connection whose statement failed, and postgres.js takes turns.
 * @throws {TypeError}
 */
export function queryOf(client: PostgresClient): PostgresQuery {
  const expected = "a Pool of pg, an instance of postgres, or a function (sql, params) => Promise<rows>";
  if (isObject(client) && ["escapeLiteral", "savepoint", "release"].some((name) => name in client)) {
    throw invalidValue("client", `${expected}; one connection may have a transaction of the program`, client);
  }
  const query = anyQueryOf("client", client, expected);
  const { options } = client as { readonly options?: { readonly max?: unknown } };
  const maxTries = Math.max(minTries, 1 + (Number(options?.max) || 0)); // a program may have left every connection so
  return async (sql, params) => {
    for (let tries = 1; ; tries += 1) {
      try {
        return await query(sql, params);
      } catch (error) {
        if (!isOfConnection(error) || tries >= (isInTransaction(error) ? maxTries : minTries)) {
          throw error;
        }
      }
    }
  };
}

/** Sends statements within the caller's transaction. @throws {TypeError} */
export function transactionOf(transaction: PostgresTransaction): PostgresQuery {
  const expected =
    "a client of pg, a transaction of postgres, or a function (sql, params) => Promise<rows> that runs a statement in the transaction";
  if (isObject(transaction) && ["totalCount", "begin"].some((name) => name in transaction)) {
    throw invalidValue("transaction", `${expected}; a pool may use another connection`, transaction);
  }
  return anyQueryOf("transaction", transaction, expected);
}

function anyQueryOf(
  name: string,
  client: PostgresClient | PostgresTransaction,
  expected: string,
): PostgresQuery {
  if (isObject(client) && "unsafe" in client && typeof client.unsafe === "function") {
    return async (sql, params) => textsOf(await client.unsafe(sql, params).raw());
  } else if (isObject(client) && "query" in client && typeof client.query === "function") {
    return "Client" in client || "escapeLiteral" in client
      ? async (text, values) => (await (client as unknown as OfPg).query({ text, values, types })).rows
      : async (sql, params) => (await client.query(sql, params)).rows;
  } else if (typeof client === "function") {
    return client;
  }
  throw invalidValue(name, expected, client);
}

/** Raw rows of postgres.js, which no option of the instance changes. */
function textsOf(rows: readonly object[]): object[] {
  return rows.map((row) =>
    valuesOf(row).map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString() : value)),
  );
}

/** An instance of postgres.js is a function. */
function isObject(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

/**
 * The argument of a function, and its value. A connection that a program left with another `client_encoding` changes texts that are not
 * ASCII, so these are sent as base64.
 */
export function argumentOf(request: object): readonly [sql: string, value: string] {
  const text = JSON.stringify(request);
  return /[^\0-\x7f]/.test(text)
    ? [
        "pg_catalog.convert_from(pg_catalog.decode($1, 'base64'), 'UTF8')",
        Buffer.from(text).toString("base64"),
      ]
    : ["$1", text];
}

/** The values of a row in the order of its columns, because postgres.js can rename columns. */
export function valuesOf(row: object | undefined): unknown[] {
  return Object.values(row ?? {});
}
