import { publish } from "../../diagnostics.ts";
import { messageOf } from "../../runtime/error-message.ts";
import type { Driver } from "../../driver.ts";
import { checkInteger } from "../../option-checks.ts";
import { postgres, type PostgresOptions } from "../postgres/index.ts";
import { defaultCommandTimeoutMs } from "../postgres/options.ts";
import { importFailure, withClose } from "./own-client.ts";
import { readEngineUrl, type OptionType } from "./engine-url.ts";

const known: Readonly<
  Record<Exclude<keyof PostgresOptions, "clock" | "random"> | "maxConnections", OptionType>
> = {
  schema: "text",
  createSchema: "boolean",
  listen: "boolean",
  mode: "text",
  maxClockDifferenceMs: "number",
  commandTimeoutMs: "number",
  maxConnections: "number",
};

type ConnectPostgresOptions = PostgresOptions & { readonly maxConnections?: number };

const connectTimeoutMs = 5_000;

/**
 * Opens a driver on a pool of its own, of at most `maxConnections` connections (default 10). Unless `listen` is false, one more
 * connection receives notifications, and with `mode=advisory` one more keeps a session. `pg` reads the other parameters of the URL, for example `sslmode`.
 */
export async function connectPostgres(text: string, given: object): Promise<Driver> {
  const { url, options } = readEngineUrl(text, given, known);
  const { maxConnections = 10, ...driverOptions } = options as ConnectPostgresOptions;
  const max = checkInteger("maxConnections", maxConnections, 1, 1_000);
  const { Pool } = await loadPg();
  const pool = new Pool({
    connectionString: url.href,
    max,
    connectionTimeoutMillis: connectTimeoutMs,
    // The pool closes a connection whose statement has no reply for this time, because the connection may be half-open.
    query_timeout: 2 * (driverOptions.commandTimeoutMs ?? defaultCommandTimeoutMs),
    keepAlive: true,
    application_name: url.searchParams.get("application_name") ?? "holdfast",
  });
  pool.on("error", (error) => {
    publish("node", () => ({ node: url.host, event: "connection-failed", detail: messageOf(error) }));
  });
  return withClose(postgres(pool, { listen: true, ...driverOptions }), () => pool.end());
}

async function loadPg(): Promise<(typeof import("pg"))["default"]> {
  try {
    return (await import("pg")).default;
  } catch (error) {
    throw importFailure("pg", error);
  }
}
