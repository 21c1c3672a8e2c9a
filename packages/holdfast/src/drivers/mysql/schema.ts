import { procedureStatements } from "./procedures.ts";
import { tables } from "./tables.ts";

/**
 * The tables and procedures of the locks, for the current database. A client without the rights to create them needs that they exist.
 * A procedure that exists already causes the error 1304, which may be ignored.
 *
 * The lock row keeps the last fencing token of its key. A row that was not used for an hour is removed. The key then continues from the
 * server's time in µs. That time is larger than every earlier token, unless the server's clock was set back by more than an hour.
 * @returns statements without a delimiter, in the order in which they must run
 */
export function mysqlSchema(): readonly string[] {
  return [...tables, ...procedureStatements];
}
