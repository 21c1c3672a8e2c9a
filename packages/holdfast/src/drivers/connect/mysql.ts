import type { Pool, PoolConnection } from "mysql2/promise";

import type { Driver } from "../../driver.ts";
import { checkInteger } from "../../option-checks.ts";
import { systemClock, type Clock } from "../../runtime/clock.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { mysql, type MysqlClient, type MysqlOptions } from "../mysql/index.ts";
import { defaultCommandTimeoutMs } from "../mysql/options.ts";
import { readEngineUrl, type OptionType } from "./engine-url.ts";
import { importFailure, withClose } from "./own-client.ts";

const known: Readonly<
  Record<Exclude<keyof MysqlOptions, "clock" | "random"> | "maxConnections", OptionType>
> = {
  createSchema: "boolean",
  commandTimeoutMs: "number",
  maxConnections: "number",
};

type ConnectMysqlOptions = MysqlOptions & { readonly maxConnections?: number };

const connectTimeoutMs = 5_000;

/**
 * Opens a driver on a pool of its own, of at most `maxConnections` connections (default 10). `mysql2` reads the other parameters of the
 * URL, for example `ssl`.
 */
export async function connectMysql(text: string, given: object): Promise<Driver> {
  const { url, options } = readEngineUrl(text, given, known);
  const { maxConnections = 10, ...driverOptions } = options as ConnectMysqlOptions;
  const connectionLimit = checkInteger("maxConnections", maxConnections, 1, 1_000);
  const { createPool } = await loadMysql();
  const pool = createPool({ uri: url.href, connectionLimit, connectTimeout: connectTimeoutMs });
  const { clock = systemClock, commandTimeoutMs = defaultCommandTimeoutMs } = driverOptions;
  return withClose(mysql(limitedClient(pool, clock, 2 * commandTimeoutMs), driverOptions), () => pool.end());
}

/** Destroys a connection whose statement has no reply in time, because the connection may be half-open. `mysql2` has no such limit. */
function limitedClient(pool: Pool, clock: Clock, limitMs: number): MysqlClient {
  const run = async <T>(use: (connection: PoolConnection) => Promise<T>): Promise<T> => {
    const connection = await pool.getConnection();
    let isHalfOpen = false;
    try {
      const reply = await withTimeout(
        clock,
        limitMs,
        use(connection).then((value) => ({ value })),
      );
      isHalfOpen = reply === undefined;
      if (reply === undefined) {
        throw new Error(`no reply within ${limitMs} ms`);
      }
      return reply.value;
    } finally {
      if (isHalfOpen) {
        connection.destroy();
      } else {
        connection.release();
      }
    }
  };
  return {
    query: (sql) => run((connection) => connection.query(sql)),
    execute: (sql, values) => run((connection) => connection.execute(sql, values)),
  };
}

async function loadMysql(): Promise<typeof import("mysql2/promise")> {
  try {
    return await import("mysql2/promise");
  } catch (error) {
    throw importFailure("mysql2", error);
  }
}
