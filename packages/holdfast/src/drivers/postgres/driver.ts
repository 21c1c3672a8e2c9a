import type { Driver } from "../../driver.ts";
import { StoreDriver } from "../store/store-driver.ts";
import { queryOf, type PostgresClient } from "./client.ts";
import { Notifications } from "./notifications.ts";
import { listeningOf } from "./listen.ts";
import { resolveOptions, type PostgresOptions } from "./options.ts";
import { AdvisorySession } from "./session.ts";
import { PostgresStore } from "./store.ts";

/**
 * Locks in a PostgreSQL database. A grant is a row, which the server commits before its reply. Exclusion therefore
 * reaches as far as the durability of the database: a failover to a standby without the last commits may lose a grant.
 *
 * Every operation is one statement without session state, so a pooler in transaction mode may be between, except with
 * `mode: "advisory"`. On a connection that the program left with an open transaction the server refuses the statement, and the driver
 * uses another connection. The driver never closes the client.
 * @param client a `Pool` of `pg`, an instance of `postgres`, or a function that runs one statement and resolves with its rows. The
 * function must run the statement outside of a transaction. A single connection is refused
 * @throws {TypeError | RangeError} for an invalid client or option
 * @example
 * ```ts
 * const locks = createLocks(postgres(new pg.Pool({ connectionString: process.env.DATABASE_URL })));
 * ```
 */
export function postgres(client: PostgresClient, options: PostgresOptions = {}): Driver {
  const { listen, mode, ...resolved } = resolveOptions(options);
  const query = queryOf(client);
  const notifications = listen ? new Notifications(listeningOf(client), query, resolved) : undefined;
  const session = mode === "advisory" ? new AdvisorySession(client, query, resolved) : undefined;
  const store = new PostgresStore(query, { notifications, session }, resolved);
  return new StoreDriver(store, { ...resolved, graceMs: resolved.maxClockDifferenceMs });
}
