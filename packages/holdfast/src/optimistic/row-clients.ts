/** `pg`: a Pool or a Client. */
export interface PgClient {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[]; rowCount: number | null }>;
}

/** `postgres` (postgres.js): its `sql` function. */
export interface PostgresJsClient {
  // eslint-disable-next-line typescript/no-explicit-any -- its parameters are of private types
  unsafe(text: string, values: any[]): PromiseLike<readonly unknown[] & { readonly count: number | null }>;
}

/** `mysql2/promise`: a pool or a connection. */
export interface Mysql2Client {
  // eslint-disable-next-line typescript/no-explicit-any -- its parameters and rows are of private types
  execute(text: string, values: any[]): Promise<[any, unknown]>;
}

/** Kysely, on any of its dialects. */
export interface KyselyClient {
  // eslint-disable-next-line typescript/no-explicit-any -- its types depend on the tables of the database
  selectFrom(table: any): any;
  // eslint-disable-next-line typescript/no-explicit-any -- its types depend on the tables of the database
  updateTable(table: any): any;
}

/** A client of a database, distinguished by its shape. Kysely comes first, then `execute`, `unsafe` and `query`. */
export type RowClient = PgClient | PostgresJsClient | Mysql2Client | KyselyClient;

export type Values = Readonly<Record<string, unknown>>;

/** The row of one key, in any client. */
export interface RowAccess {
  /** @returns undefined if no row has the key */
  read(): Promise<Values | undefined>;
  /** Sets the values and raises the version by 1, if the row has the version. @returns the number of changed rows */
  update(values: Values, version: unknown): Promise<number>;
}

export interface RowNames {
  readonly table: string;
  readonly key: Values;
  readonly version: string;
}

export function rowAccess(client: RowClient, names: RowNames): RowAccess {
  if ((typeof client === "object" && client !== null) || typeof client === "function") {
    if ("updateTable" in client) {
      return kyselyRow(client, names);
    }
    if ("execute" in client) {
      return sqlRow(
        names,
        () => "?",
        async (text, values) => mysqlResult((await client.execute(text, values))[0]),
      );
    }
    if ("unsafe" in client) {
      return sqlRow(names, numbered, async (text, values) => {
        const result = await client.unsafe(text, values);
        return { rows: [...result], count: result.count ?? 0 };
      });
    }
    if ("query" in client) {
      return sqlRow(names, numbered, async (text, values) => {
        const { rows, rowCount } = await client.query(text, values);
        return { rows, count: rowCount ?? 0 };
      });
    }
  }
  throw new TypeError("Expected `client` to be a client of pg, postgres, mysql2/promise or Kysely");
}

interface Result {
  readonly rows: readonly unknown[];
  readonly count: number;
}

/** @param placeholder the placeholder of the parameter with this index, from 1 */
function sqlRow(
  { table, key, version }: RowNames,
  placeholder: (index: number) => string,
  run: (text: string, values: unknown[]) => Promise<Result>,
): RowAccess {
  const equalities = (columns: readonly string[], first: number, separator: string): string =>
    columns.map((column, at) => `${column} = ${placeholder(first + at)}`).join(separator);
  const keyColumns = Object.keys(key);
  return {
    async read() {
      const text = `SELECT * FROM ${table} WHERE ${equalities(keyColumns, 1, " AND ")}`;
      return (await run(text, Object.values(key))).rows[0] as Values | undefined;
    },
    async update(values, present) {
      const columns = Object.keys(values);
      const changes = [equalities(columns, 1, ", "), `${version} = ${version} + 1`]
        .filter(Boolean)
        .join(", ");
      const condition = equalities([...keyColumns, version], columns.length + 1, " AND ");
      const text = `UPDATE ${table} SET ${changes} WHERE ${condition}`;
      return (await run(text, [...Object.values(values), ...Object.values(key), present])).count;
    },
  };
}

function numbered(index: number): string {
  return `$${index}`;
}

/** The first element of a reply of mysql2: the rows, or a header. The version always changes, so all matched rows are counted. */
function mysqlResult(reply: unknown): Result {
  return Array.isArray(reply)
    ? { rows: reply, count: 0 }
    : { rows: [], count: (reply as { readonly affectedRows: number }).affectedRows };
}

interface KyselyQuery {
  selectAll(): KyselyQuery;
  set(change: unknown): KyselyQuery;
  where(column: string, operator: string, value: unknown): KyselyQuery;
  executeTakeFirst(): Promise<unknown>;
}

interface KyselyExpressions {
  (column: string, operator: string, value: number): unknown;
}

function kyselyRow(client: KyselyClient, { table, key, version }: RowNames): RowAccess {
  const withKey = (query: KyselyQuery): KyselyQuery =>
    Object.entries(key).reduce((narrowed, [column, value]) => narrowed.where(column, "=", value), query);
  return {
    async read() {
      const query = (client.selectFrom(table) as KyselyQuery).selectAll();
      return (await withKey(query).executeTakeFirst()) as Values | undefined;
    },
    async update(values, present) {
      const query = (client.updateTable(table) as KyselyQuery).set((expression: KyselyExpressions) => ({
        ...values,
        [version]: expression(version, "+", 1),
      }));
      const result = await withKey(query).where(version, "=", present).executeTakeFirst();
      return Number((result as { readonly numUpdatedRows: bigint }).numUpdatedRows);
    },
  };
}
