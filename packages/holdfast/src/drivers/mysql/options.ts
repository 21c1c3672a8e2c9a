import { checkBoolean, checkInteger, checkOptionNames } from "../../option-checks.ts";
import { systemClock, type Clock } from "../../runtime/clock.ts";
import { systemRandom, type Random } from "../../runtime/random.ts";

export const defaultCommandTimeoutMs = 2_000;

export interface MysqlOptions {
  /**
   * Whether the driver creates its tables and procedures if they are missing. Otherwise run the statements of {@link mysqlSchema} before.
   * @defaultValue true
   */
  readonly createSchema?: boolean | undefined;
  /** How long a reply may take, ms. @defaultValue 2 000 */
  readonly commandTimeoutMs?: number | undefined;
  /** Time and timers. @defaultValue the clock of the process */
  readonly clock?: Clock | undefined;
  /** @defaultValue the operating system's */
  readonly random?: Random | undefined;
}

export interface ResolvedOptions {
  readonly createSchema: boolean;
  readonly commandTimeoutMs: number;
  readonly clock: Clock;
  readonly random: Random;
}

/** @throws {TypeError | RangeError} */
export function resolveOptions(options: MysqlOptions): ResolvedOptions {
  checkOptionNames(options, ["createSchema", "commandTimeoutMs", "clock", "random"]);
  const { createSchema = true, commandTimeoutMs = defaultCommandTimeoutMs } = options;
  return {
    createSchema: checkBoolean("createSchema", createSchema),
    commandTimeoutMs: checkInteger("commandTimeoutMs", commandTimeoutMs, 10, 600_000),
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
  };
}
