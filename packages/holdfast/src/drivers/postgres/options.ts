import { checkBoolean, checkInteger, checkOptionNames, invalidValue } from "../../option-checks.ts";
import { systemClock, type Clock } from "../../runtime/clock.ts";
import { systemRandom, type Random } from "../../runtime/random.ts";

export const defaultCommandTimeoutMs = 2_000;

export interface PostgresOptions {
  /** The schema of the tables and functions: lower-case letters, digits and `_`, 63 characters at most. @defaultValue "holdfast" */
  readonly schema?: string | undefined;
  /**
   * Whether the driver creates the schema if it is missing or older. Otherwise run the statement of {@link postgresSchema} before.
   * @defaultValue true
   */
  readonly createSchema?: boolean | undefined;
  /**
   * Whether waiters and holders get notifications, by `LISTEN` on one more connection. Needs a `Pool` of `pg` or an instance of
   * `postgres`. If no notification arrives, for example with a pooler in transaction mode, waiters poll. @defaultValue false
   */
  readonly listen?: boolean | undefined;
  /**
   * `lease`: each renewal writes the row of its lease. `advisory`: the driver opens one more connection, whose session holds an advisory
   * lock. The first renewal binds a lease to the session, and later ones write nothing. Needs a `Pool` of `pg`, PostgreSQL 14, and no
   * pooler in transaction mode. @defaultValue "lease"
   */
  readonly mode?: "lease" | "advisory" | undefined;
  /**
   * The largest difference between the clocks of a primary and a standby that may be promoted, ms. An expired grant keeps its key for this
   * time. Otherwise a new primary whose clock is ahead ends leases early. @defaultValue 0, for one server
   */
  readonly maxClockDifferenceMs?: number | undefined;
  /** How long a reply may take, ms. @defaultValue 2 000 */
  readonly commandTimeoutMs?: number | undefined;
  /** Time and timers. @defaultValue the clock of the process */
  readonly clock?: Clock | undefined;
  /** @defaultValue the operating system's */
  readonly random?: Random | undefined;
}

export interface ResolvedOptions {
  readonly schema: string;
  readonly createSchema: boolean;
  readonly listen: boolean;
  readonly mode: "lease" | "advisory";
  readonly maxClockDifferenceMs: number;
  readonly commandTimeoutMs: number;
  readonly clock: Clock;
  readonly random: Random;
}

/** @throws {TypeError | RangeError} */
export function resolveOptions(options: PostgresOptions): ResolvedOptions {
  checkOptionNames(options, [
    "schema",
    "createSchema",
    "listen",
    "mode",
    "maxClockDifferenceMs",
    "commandTimeoutMs",
    "clock",
    "random",
  ]);
  const {
    createSchema = true,
    listen = false,
    maxClockDifferenceMs = 0,
    commandTimeoutMs = defaultCommandTimeoutMs,
  } = options;
  return {
    schema: checkSchema(options.schema),
    createSchema: checkBoolean("createSchema", createSchema),
    listen: checkBoolean("listen", listen),
    mode: checkMode(options.mode),
    maxClockDifferenceMs: checkInteger("maxClockDifferenceMs", maxClockDifferenceMs, 0, 3_600_000),
    commandTimeoutMs: checkInteger("commandTimeoutMs", commandTimeoutMs, 10, 600_000),
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
  };
}

function checkMode(mode: unknown = "lease"): "lease" | "advisory" {
  if (mode !== "lease" && mode !== "advisory") {
    throw invalidValue("mode", '"lease" or "advisory"', mode);
  }
  return mode;
}

/** @throws {TypeError | RangeError} */
export function checkSchema(schema: unknown = "holdfast"): string {
  if (typeof schema !== "string" || !/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw invalidValue("schema", "a string of lower-case letters, digits and `_`, 63 at most", schema);
  }
  return schema;
}

/** The name of a schema in a statement. It may be a reserved word. */
export function quoted(schema: string): string {
  return `"${schema}"`;
}
