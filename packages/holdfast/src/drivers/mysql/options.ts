import { checkBoolean, checkInteger, checkOptionNames } from "../../option-checks.ts";
import { systemClock, type Clock } from "../../runtime/clock.ts";
import { systemRandom, type Random } from "../../runtime/random.ts";

const defaultCommandTimeoutMs = 2_000;

export interface MysqlOptions {
  /**
   * Whether the driver creates its tables and procedures if they are missing. Otherwise run the statements of {@link mysqlSchema} before.
   * @defaultValue true
   */
  readonly createSchema?: boolean | undefined;
  /**
   * The largest difference between the clocks of the nodes that may end a grant, ms: the writing nodes of a Galera cluster, or a primary
   * and the replica that is promoted. An expired grant keeps its key for this time. A Galera node without the option is refused, because
   * a node whose clock is ahead would grant the lock of a valid lease. @defaultValue 0, for one writing node
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
  readonly createSchema: boolean;
  readonly maxClockDifferenceMs: number | undefined;
  readonly commandTimeoutMs: number;
  readonly clock: Clock;
  readonly random: Random;
}

/** @throws {TypeError | RangeError} */
export function resolveOptions(options: MysqlOptions): ResolvedOptions {
  checkOptionNames(options, ["createSchema", "maxClockDifferenceMs", "commandTimeoutMs", "clock", "random"]);
  const { createSchema = true, maxClockDifferenceMs, commandTimeoutMs = defaultCommandTimeoutMs } = options;
  return {
    createSchema: checkBoolean("createSchema", createSchema),
    maxClockDifferenceMs:
      maxClockDifferenceMs === undefined
        ? undefined
        : checkInteger("maxClockDifferenceMs", maxClockDifferenceMs, 0, 3_600_000),
    commandTimeoutMs: checkInteger("commandTimeoutMs", commandTimeoutMs, 10, 600_000),
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
  };
}
