import { invalidValue } from "../../option-checks.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { isExistingProcedure, isOfConnection, isInterruption } from "./errors.ts";

export type MysqlValue = string | number | Uint8Array | null;

/** A pool or a connection of `mysql2/promise`, or another object that runs statements. */
export interface MysqlStatements {
  // oxlint-disable-next-line typescript/no-explicit-any -- the rows have the types of the client
  query(sql: string): Promise<[any, unknown]>;
  // oxlint-disable-next-line typescript/no-explicit-any -- the rows have the types of the client
  execute(statement: MysqlStatement, values: any[]): Promise<[any, unknown]>;
}

/** A promise pool of `mysql2`. A single connection is refused, because the program may open a transaction on it. */
export interface MysqlClient extends MysqlStatements {
  /** Without this method each statement must run outside of a transaction, whatever the connection is. */
  getConnection?(): Promise<MysqlConnection>;
  readonly release?: never;
}

/** One connection of a pool. */
export interface MysqlConnection extends MysqlStatements {
  release(): void;
  destroy(): void;
}

/** A connection of `mysql2/promise`, within a transaction. A pool is refused, because each statement may get another connection. */
export interface MysqlTransaction extends MysqlStatements {
  readonly getConnection?: never;
}

/** A statement with the form of its rows, which the options of a pool may change for others. */
export interface MysqlStatement {
  readonly sql: string;
  readonly typeCast: (field: unknown, next: () => unknown) => unknown;
  readonly rowsAsArray: boolean;
  readonly nestTables: boolean;
}

export type Row = Readonly<Record<string, unknown>>;

/** How often a call is sent at once, if connections that a program left in a transaction or with other settings refuse it. */
const minTries = 5;

/** @throws {TypeError} */
export function checkClient(client: unknown): MysqlClient {
  const expected = "a promise pool of mysql2 (from mysql2/promise, or pool.promise())";
  if (!hasStatements(client)) {
    throw invalidValue("client", expected, client);
  }
  if ("beginTransaction" in client && !("getConnection" in client)) {
    throw invalidValue("client", `${expected}; one connection may have a transaction of the program`, client);
  }
  return client;
}

/** @throws {TypeError} */
export function checkTransaction(transaction: unknown): MysqlTransaction {
  const expected = "a connection of mysql2/promise, within a transaction";
  if (!hasStatements(transaction)) {
    throw invalidValue("transaction", expected, transaction);
  }
  if ("getConnection" in transaction) {
    throw invalidValue("transaction", `${expected}; a pool may use another connection`, transaction);
  }
  return transaction;
}

/** A client with callbacks has the method `promise`. */
function hasStatements(client: unknown): client is MysqlStatements {
  const isClient = typeof client === "object" && client !== null && "execute" in client && "query" in client;
  return isClient && !("promise" in client);
}

/** The members of a pool of `mysql2` that show its settings. */
interface Configured {
  readonly config?: {
    readonly connectionConfig?: { readonly database?: unknown };
    readonly connectionLimit?: unknown;
  };
}

interface Limits {
  readonly clock: Clock;
  /** A connection is replaced if a statement has no reply for this time, ms, because the connection may be half-open. */
  readonly replyLimitMs: number;
}

/**
 * The database of the locks. A program may leave a connection of the pool in another database, by `USE` or `changeUser`. So all names of
 * tables and procedures have the name of the database: that of the pool's settings, or else of the first call.
 *
 * A program may also leave a connection in a transaction. The procedures refuse to run there. A pool then closes that connection, and the
 * call gets another one.
 */
export class Database {
  readonly #client: MysqlClient;
  readonly #limits: Limits;
  readonly #maxTries: number;
  #name: string | undefined;

  constructor(client: MysqlClient & { readonly pool?: Configured }, limits: Limits) {
    this.#client = client;
    this.#limits = limits;
    this.#maxTries = Math.max(minTries, 1 + (Number(client.pool?.config?.connectionLimit) || 0)); // all may be left so
    this.#name = databaseOf(client.pool);
  }

  /** Runs a prepared statement, so that values need no escapes. @returns its rows */
  async rows(sql: string, values: MysqlValue[]): Promise<Row[]> {
    return (await this.#execute(sql, values)) as Row[];
  }

  /** Calls a procedure. @returns the rows of each of its results */
  async call(name: string, values: MysqlValue[]): Promise<Row[][]> {
    const placeholders = values.map(placeholderOf).join(", ");
    return (await this.#execute(`CALL ${name}(${placeholders})`, values.map(parameterOf))) as Row[][];
  }

  /** Runs the statements of the schema. Other clients may do the same at once. */
  async create(statements: readonly string[]): Promise<void> {
    await this.#onConnection(async (connection) => {
      // In a transaction this is refused. The next statement would commit the transaction.
      await connection.query("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
      const restore = this.#client.getConnection && (await standardMode(connection));
      try {
        await this.#createAll(connection, statements);
      } finally {
        await restore?.();
      }
    });
  }

  async #createAll(connection: MysqlStatements, statements: readonly string[]): Promise<void> {
    const prefix = await this.#prefix(connection);
    for (const sql of statements) {
      try {
        // The first name is that of the new table or procedure. The names within a procedure belong to its database.
        await connection.query(sql.replace(names, (found) => prefix + found));
      } catch (error) {
        if (!isExistingProcedure(error)) {
          throw error;
        }
      }
    }
  }

  #execute(sql: string, values: MysqlValue[]): Promise<unknown> {
    return this.#onConnection(async (connection) => {
      const prefix = await this.#prefix(connection);
      const [reply] = await connection.execute(
        statement(sql.replaceAll(allNames, (found) => prefix + found)),
        values,
      );
      return reply;
    });
  }

  async #onConnection<T>(use: (connection: MysqlStatements) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await (this.#client.getConnection ? this.#onPool(use) : use(this.#client));
      } catch (error) {
        if (!isOfConnection(error) || tries >= this.#maxTries) {
          throw error;
        }
      }
    }
  }

  async #onPool<T>(use: (connection: MysqlStatements) => Promise<T>): Promise<T> {
    const { clock, replyLimitMs } = this.#limits;
    const connection = (await this.#client.getConnection?.()) as MysqlConnection;
    let isUseless = false;
    try {
      const pending = use(connection).then((value) => ({ value }));
      const reply = await withTimeout(clock, replyLimitMs, pending);
      if (reply === undefined) {
        isUseless = true;
        throw new Error(`no reply within ${replyLimitMs} ms`);
      }
      return reply.value;
    } catch (error) {
      isUseless ||= isOfConnection(error) || isInterruption(error);
      throw error;
    } finally {
      if (isUseless) {
        connection.destroy();
      } else {
        connection.release();
      }
    }
  }

  async #prefix(connection: MysqlStatements): Promise<string> {
    // A connection of a PoolCluster has a pool, which the cluster does not show.
    this.#name ??= databaseOf((connection as { connection?: { _pool?: Configured } }).connection?._pool);
    if (this.#name === undefined) {
      const [row] = await rowsOf(connection, "SELECT DATABASE() AS name", []);
      const current = row?.["name"] ?? undefined;
      this.#name ??= current === undefined ? undefined : textOf(current); // of several first calls, the first reply decides for all
    }
    return this.#name === undefined ? "" : `\`${this.#name.replaceAll("`", "``")}\`.`;
  }
}

/** The database of the settings of a pool. */
function databaseOf(pool: Configured | undefined): string | undefined {
  const name = pool?.config?.connectionConfig?.database;
  return typeof name === "string" && name !== "" ? name : undefined;
}

const names = /\bholdfast\d*_\w+/;
const allNames = new RegExp(names, "g");

/** A procedure keeps the mode of the connection that creates it. @returns a function that restores the mode */
async function standardMode(connection: MysqlStatements): Promise<() => Promise<unknown>> {
  const [row] = await rowsOf(connection, "SELECT @@SESSION.sql_mode AS mode", []);
  await connection.query("SET SESSION sql_mode = 'STRICT_TRANS_TABLES'");
  return () => connection.query(`SET SESSION sql_mode = '${textOf(row?.["mode"])}'`);
}

/** Rows are read as objects with the values of `mysql2`, whatever the options of the pool are. */
function statement(sql: string): MysqlStatement {
  return { sql, typeCast: (_, next) => next(), rowsAsArray: false, nestTables: false };
}

/** Runs a prepared statement on one connection. @returns its rows */
export async function rowsOf(connection: MysqlStatements, sql: string, values: MysqlValue[]): Promise<Row[]> {
  const [rows] = await connection.execute(statement(sql), values);
  return rows as Row[];
}

/** Bytes are sent as digits: older versions of `mysql2` send bytes as a text, which other character sets of a connection change. */
export function placeholderOf(value: MysqlValue): string {
  return value instanceof Uint8Array ? "UNHEX(CONVERT(? USING latin1))" : "?";
}

export function parameterOf(value: MysqlValue): MysqlValue {
  return value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value;
}

/** Keys and tokens are bytes, which no character set of a connection changes. */
export function bytes(text: string): Uint8Array {
  return Buffer.from(text, "utf8");
}

/** A text column or a column of bytes. */
export function textOf(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString("utf8") : String(value);
}
