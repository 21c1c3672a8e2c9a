import type { Driver } from "../../driver.ts";
import { LockError } from "../../errors.ts";
import { checkInteger } from "../../option-checks.ts";
import { mysql, type MysqlOptions } from "../mysql/index.ts";
import { readEngineUrl, type OptionType } from "./engine-url.ts";

const known: Readonly<
  Record<Exclude<keyof MysqlOptions, "clock" | "random"> | "maxConnections", OptionType>
> = {
  createSchema: "boolean",
  commandTimeoutMs: "number",
  maxConnections: "number",
};

/**
 * Opens a driver on a pool of its own, of at most `maxConnections` connections (default 10). `mysql2` reads the other parameters of the
 * URL, for example `ssl`.
 */
export async function connectMysql(text: string, given: object): Promise<Driver> {
  const { url, options } = readEngineUrl(text, given, known);
  const { maxConnections = 10, ...driverOptions } = options;
  const connectionLimit = checkInteger("maxConnections", maxConnections as number, 1, 1_000);
  const { createPool } = await loadMysql();
  const pool = createPool({ uri: url.href, connectionLimit, connectTimeout: 5_000 });
  const driver = mysql(pool, driverOptions as MysqlOptions);
  const close = driver.close.bind(driver);
  driver.close = async () => {
    try {
      await close();
    } finally {
      await pool.end();
    }
  };
  return driver;
}

async function loadMysql(): Promise<typeof import("mysql2/promise")> {
  try {
    return await import("mysql2/promise");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") {
      throw error;
    }
    throw new LockError(
      `connect() needs the client library mysql2: npm install mysql2 (${message.slice(0, 80)})`,
      {
        code: "unsupported",
      },
    );
  }
}
