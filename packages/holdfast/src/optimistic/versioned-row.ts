import { checkObject, checkOptionNames, invalidValue } from "../option-checks.ts";
import type { OptimisticUpdate } from "./optimistic.ts";
import { rowAccess, type RowClient, type Values } from "./row-clients.ts";

export interface VersionedRowOptions<Row> {
  /** The table, also with its schema. Names are not quoted, except by Kysely. */
  readonly table: string;
  /** The columns of the primary key, with the values of the row. */
  readonly key: Partial<Row>;
  /**
   * Computes the values to set from the present row. It runs once for each try, so it must have no other effect.
   * An error that it throws ends the update, and nothing is written.
   */
  readonly change: (row: Row) => Partial<Row> | Promise<Partial<Row>>;
  /**
   * An integer column that each update raises by 1.
   * @defaultValue "version"
   */
  readonly version?: string | undefined;
}

const conflictCodes: readonly unknown[] = ["40001", "40P01", 1205, 1213];

/**
 * The update of one row, for {@link optimistic}. Its value is the row after the update, without what triggers changed.
 *
 * Each try is two statements, `SELECT` and `UPDATE … WHERE version = …`, each in a transaction of its own. Inside a transaction of the
 * caller the `SELECT` may see an old snapshot in every try: pass the pool, not the transaction. A deadlock, a lock timeout and a
 * serialization failure count as conflicts, because the statement then had no effect.
 * @param client `pg` (Pool, Client), `postgres` (its `sql`), `mysql2/promise` (pool, connection) or Kysely, distinguished by its shape
 * @throws TypeError or RangeError for an invalid name or client
 */
export function versionedRow<Row extends object = Record<string, unknown>>(
  client: RowClient,
  options: VersionedRowOptions<Row>,
): OptimisticUpdate<Row, Row> {
  checkOptionNames(options, ["table", "key", "change", "version"]);
  const { table, change, version = "version" } = options;
  checkName("table", table, /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)?$/);
  checkName("version", version);
  const key = checkColumns("key", options.key as Values);
  if (Object.keys(key).length === 0) {
    throw invalidValue("key", "an object with at least one column", key);
  }
  const row = rowAccess(client, { table, key, version });
  return {
    async read() {
      const found = await row.read();
      if (found === undefined) {
        throw new Error(`No row of ${table} has the key (${Object.keys(key).join(", ")})`);
      }
      if (!(version in found)) {
        throw new Error(`The row of ${table} has no column ${version}`);
      }
      return found as Row;
    },
    async write(present) {
      const values = checkColumns("change", (await change(present)) as Values);
      const count = await row.update(values, (present as Values)[version]).catch(noneIfConflict);
      return count === 0
        ? { written: false }
        : { written: true, value: { ...present, ...(values as Partial<Row>) } };
    },
  };
}

/** Column names become a part of the statement, so nothing but a plain name is accepted. */
function checkColumns(name: string, values: Values): Values {
  checkObject(name, values);
  Object.keys(values).forEach((column) => checkName(`column of ${name}`, column));
  return values;
}

function checkName(name: string, value: unknown, pattern = /^[A-Za-z_]\w*$/): void {
  if (typeof value !== "string" || !pattern.test(value)) {
    throw invalidValue(name, "a string of letters, digits and `_`", value);
  }
}

function noneIfConflict(error: unknown): number {
  const { code, errno } = (error ?? {}) as { readonly code?: unknown; readonly errno?: unknown };
  if (conflictCodes.includes(code) || conflictCodes.includes(errno)) {
    return 0;
  }
  throw error;
}
