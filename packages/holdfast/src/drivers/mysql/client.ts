import { invalidValue } from "../../option-checks.ts";

export type MysqlValue = string | number | Uint8Array | null;

/** A promise pool of `mysql2`, or one of its connections. */
export interface MysqlClient {
  // oxlint-disable-next-line typescript/no-explicit-any -- the rows have the types of the client
  query(sql: string): Promise<[any, unknown]>;
  // oxlint-disable-next-line typescript/no-explicit-any -- the rows have the types of the client
  execute(statement: MysqlStatement, values: any[]): Promise<[any, unknown]>;
}

/** A statement with the form of its rows, which the options of a pool may change for others. */
export interface MysqlStatement {
  readonly sql: string;
  readonly typeCast: (field: unknown, next: () => unknown) => unknown;
  readonly rowsAsArray: boolean;
  readonly nestTables: boolean;
}

export type Row = Readonly<Record<string, unknown>>;

/** @throws {TypeError} */
export function checkClient(name: string, client: unknown): MysqlClient {
  if (typeof client === "object" && client !== null && "execute" in client && "query" in client) {
    if (!("promise" in client)) {
      return client as MysqlClient;
    }
  }
  throw invalidValue(name, "a promise pool of mysql2 (from mysql2/promise, or pool.promise())", client);
}

/** The members of the clients of `mysql2` that show the database of their settings. */
interface Configured {
  readonly pool?: { readonly config?: { readonly connectionConfig?: { readonly database?: unknown } } };
  readonly connection?: { readonly config?: { readonly database?: unknown } };
}

/**
 * The client with the names of tables and procedures in one database. A program may leave a connection of the pool in another database,
 * by `USE` or `changeUser`. Without the name, a call on that connection would find other locks there, or create them.
 *
 * The database is that of the pool's settings, or else of the first call.
 */
export function inOneDatabase(client: MysqlClient): MysqlClient {
  let name = configuredDatabase(client);
  const prefix = async (): Promise<string> => {
    if (name === undefined) {
      const current = await currentDatabase(client);
      name ??= current; // of several first calls, the first reply decides for all
    }
    return name === undefined ? "" : `\`${name.replaceAll("`", "``")}\`.`;
  };
  return {
    // The first name is that of the new table or procedure. The names within a procedure belong to its database.
    query: async (sql) => {
      const own = await prefix();
      return client.query(sql.replace(names, (found) => own + found));
    },
    execute: async ({ sql, ...form }, values) => {
      const own = await prefix();
      return client.execute({ ...form, sql: sql.replaceAll(allNames, (found) => own + found) }, values);
    },
  };
}

const names = /\bholdfast\d*_\w+/;
const allNames = new RegExp(names, "g");

function configuredDatabase(client: MysqlClient & Configured): string | undefined {
  const name = client.pool?.config?.connectionConfig?.database ?? client.connection?.config?.database;
  return typeof name === "string" && name !== "" ? name : undefined;
}

async function currentDatabase(client: MysqlClient): Promise<string | undefined> {
  const [row] = await rowsOf(client, "SELECT DATABASE() AS name", []);
  const name = row?.["name"] ?? undefined;
  return name === undefined ? undefined : textOf(name);
}

/** Rows are read as objects with the values of `mysql2`, whatever the options of the pool are. */
function statement(sql: string): MysqlStatement {
  return { sql, typeCast: (_, next) => next(), rowsAsArray: false, nestTables: false };
}

/** Runs a prepared statement, so that values need no escapes. @returns its rows */
export async function rowsOf(client: MysqlClient, sql: string, values: MysqlValue[]): Promise<Row[]> {
  const [rows] = await client.execute(statement(sql), values);
  return rows as Row[];
}

/** Calls a procedure. @returns its only row */
export async function callProcedure(client: MysqlClient, name: string, values: MysqlValue[]): Promise<Row> {
  const sql = `CALL ${name}(${values.map(() => "?").join(", ")})`;
  const [[rows]] = (await client.execute(statement(sql), values)) as [[Row[]], unknown];
  return rows[0] as Row;
}

/** Keys and tokens are sent as bytes, which no character set of a connection changes. */
export function bytes(text: string): Uint8Array {
  return Buffer.from(text, "utf8");
}

/** A text column or a column of bytes. */
export function textOf(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString("utf8") : String(value);
}
