import type { Driver } from "../../driver.ts";
import { checkInteger } from "../../option-checks.ts";
import { mysql, type MysqlOptions } from "../mysql/index.ts";
import { readEngineUrl, type OptionType } from "./engine-url.ts";
import { importFailure, withClose } from "./own-client.ts";

const known: Readonly<
  Record<Exclude<keyof MysqlOptions, "clock" | "random"> | "maxConnections", OptionType>
> = {
  createSchema: "boolean",
  maxClockDifferenceMs: "number",
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
  return withClose(mysql(pool, driverOptions), () => pool.end());
}

async function loadMysql(): Promise<typeof import("mysql2/promise")> {
  try {
    return await import("mysql2/promise");
  } catch (error) {
    throw importFailure("mysql2", error);
  }
}
