import { systemClock, type Clock } from "../../runtime/clock.ts";
import { checkOptionNames, checkObject, integerOr, invalidValue } from "../../option-checks.ts";
import { systemRandom, type Random } from "../../runtime/random.ts";

/** What `redis()` and `redlock()` have in common. */
interface CommonOptions {
  /** Stands before every key. @defaultValue "lock:" */
  prefix?: string | undefined;
  /** How long one command may take before it counts as unanswered, ms. @defaultValue 2 000 */
  commandTimeoutMs?: number | undefined;
  /** How long a grant by message is valid before its first extension, ms. @defaultValue 3 000 */
  claimMs?: number | undefined;
  /** How many may wait for one key on the server; then `too-many-waiters`. @defaultValue 100 000 */
  maxQueue?: number | undefined;
  /** For tests. */
  clock?: Clock | undefined;
  /** For tests. */
  random?: Random | undefined;
}

export interface RedisOptions extends CommonOptions {
  /**
   * How many replicas have to acknowledge a grant or an extension before it counts, 0 to 100. Fewer, or none: `replicas-not-reached`,
   * and the grant is rolled back. Narrows the window in which a failover forgets a grant, and does not close it.
   * @defaultValue 0
   */
  minReplicas?: number | undefined;
}

export interface RedlockOptions extends CommonOptions {
  /** How long one node may take to answer before it is not waited for, ms. @defaultValue 50 */
  nodeTimeoutMs?: number | undefined;
  /** What clocks may drift apart over a TTL, as a fraction of it. @defaultValue 0.01 */
  driftFactor?: number | undefined;
  /**
   * The largest TTL that anybody uses on these nodes, ms: so long a node does not vote after a restart, as it may have forgotten
   * grants that are still valid. The same for all who use the nodes. @defaultValue 60 000
   */
  maxTtlMs?: number | undefined;
  /**
   * How far the clocks of two nodes may differ, ms. A node that differs by more from the others does not vote. Whoever takes over
   * after a holder that did not release waits three times as long. The same for all who use the nodes. @defaultValue 200
   */
  maxClockDifferenceMs?: number | undefined;
  /**
   * How long a lock's fencing counter outlives it on each node, ms; at least for the largest TTL and the wait behind it, as the node
   * remembers its votes there. @defaultValue 3 600 000
   */
  fenceRetentionMs?: number | undefined;
  /** `"off"`: restarted nodes vote at once, which gives two holders. For tests. @defaultValue "auto" */
  restartGuard?: "auto" | "off" | undefined;
}

/** What both drivers are set to. */
export interface RedisSettings {
  readonly prefix: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly commandTimeoutMs: number;
  readonly claimMs: number;
  readonly queueBound: number;
}

export interface OneServerSettings extends RedisSettings {
  readonly minReplicas: number;
}

export interface RedlockSettings extends RedisSettings {
  readonly nodeTimeoutMs: number;
  readonly driftFactor: number;
  readonly maxTtlMs: number;
  readonly maxClockDifferenceMs: number;
  readonly retentionMs: number;
  readonly isGuardOff: boolean;
}

const redisNames = ["prefix", "commandTimeoutMs", "claimMs", "maxQueue", "clock", "random"];
const dayMs = 86_400_000;

/** @throws {TypeError | RangeError} that names the option, what was expected, and what came */
export function resolveRedis(options: RedisOptions | undefined): OneServerSettings {
  const given = objectOf(options, [...redisNames, "minReplicas"]);
  const minReplicas = integerOr(0, "minReplicas", given.minReplicas, [0, 100]);
  return { ...settingsOf(given), minReplicas };
}

/** @throws {TypeError | RangeError} that names the option, what was expected, and what came */
export function resolveRedlock(options: RedlockOptions | undefined): RedlockSettings {
  const given = objectOf(options, [
    ...redisNames,
    "nodeTimeoutMs",
    "driftFactor",
    "maxTtlMs",
    "maxClockDifferenceMs",
    "fenceRetentionMs",
    "restartGuard",
  ]);
  const { driftFactor = 0.01, restartGuard = "auto" } = given;
  if (typeof driftFactor !== "number" || !(driftFactor >= 0 && driftFactor <= 0.5)) {
    throw invalidValue("driftFactor", "a fraction from 0 to 0.5", driftFactor);
  }
  if (restartGuard !== "auto" && restartGuard !== "off") {
    throw invalidValue("restartGuard", '"auto" or "off"', restartGuard);
  }
  const maxTtlMs = integerOr(60_000, "maxTtlMs", given.maxTtlMs, [100, dayMs]);
  const maxClockDifferenceMs = integerOr(
    200,
    "maxClockDifferenceMs",
    given.maxClockDifferenceMs,
    [1, 60_000],
  );
  const retentionMs = integerOr(3_600_000, "fenceRetentionMs", given.fenceRetentionMs, [0, 31_536_000_000]);
  return {
    ...settingsOf(given),
    nodeTimeoutMs: integerOr(50, "nodeTimeoutMs", given.nodeTimeoutMs, [5, 60_000]),
    maxTtlMs,
    maxClockDifferenceMs,
    retentionMs: Math.max(retentionMs, maxTtlMs + maxSkewWaitMs(maxClockDifferenceMs)),
    driftFactor,
    isGuardOff: restartGuard === "off",
  };
}

/**
 * How long a vote waits behind a holder that was not released. The node was at most so far behind one of the others when it voted for
 * that holder, is at most so far ahead of another now, and these two differ by no more.
 */
export function maxSkewWaitMs(maxClockDifferenceMs: number): number {
  return 3 * maxClockDifferenceMs;
}

function objectOf<Options extends object>(options: Options | undefined, names: readonly string[]): Options {
  const given = options === undefined ? ({} as Options) : options;
  checkObject("options", given);
  checkOptionNames(given, names);
  return given;
}

function settingsOf(given: CommonOptions): RedisSettings {
  const { prefix } = given;
  if (prefix !== undefined && (typeof prefix !== "string" || /\p{Surrogate}/u.test(prefix))) {
    throw invalidValue("prefix", "a string of well-formed UTF-8", prefix);
  }
  return {
    prefix: prefix ?? "lock:",
    clock: given.clock ?? systemClock,
    random: given.random ?? systemRandom,
    commandTimeoutMs: integerOr(2_000, "commandTimeoutMs", given.commandTimeoutMs, [10, 600_000]),
    claimMs: integerOr(3_000, "claimMs", given.claimMs, [100, dayMs]),
    queueBound: integerOr(100_000, "maxQueue", given.maxQueue, [1, 10_000_000]),
  };
}
