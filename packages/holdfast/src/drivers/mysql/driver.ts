import type { Driver } from "../../driver.ts";
import { StoreDriver } from "../store/store-driver.ts";
import { checkClient, Database, type MysqlClient } from "./client.ts";
import { resolveOptions, type MysqlOptions } from "./options.ts";
import { MysqlStore } from "./store.ts";

/**
 * Locks in a database of MySQL 8.0.1 or newer, or MariaDB 10.6 or newer. A grant is a row, which the server commits before its reply.
 * Exclusion therefore reaches as far as the durability of the database: a failover to a replica without the last commits may lose a
 * grant.
 *
 * Every operation is one call of a stored procedure, and one transaction. A connection of the pool that the program
 * left in a transaction, or that does not reply, is closed, and the call gets another one. The driver never closes the client.
 * @param client a promise pool of `mysql2`. Its database gets the tables. A single connection is refused
 * @throws {TypeError | RangeError} for an invalid client or option
 * @example
 * ```ts
 * const locks = createLocks(mysql(createPool(process.env.DATABASE_URL))); // createPool of mysql2/promise
 * ```
 */
export function mysql(client: MysqlClient, options: MysqlOptions = {}): Driver {
  const resolved = resolveOptions(options);
  const { clock, commandTimeoutMs, maxClockDifferenceMs: graceMs = 0 } = resolved;
  const database = new Database(checkClient(client), { clock, replyLimitMs: 2 * commandTimeoutMs });
  return new StoreDriver(new MysqlStore(database, resolved), { ...resolved, graceMs });
}
