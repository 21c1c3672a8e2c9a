import type { Driver } from "../../driver.ts";
import { systemClock, type Clock } from "../../runtime/clock.ts";
import { checkOptionNames, checkObject, integerOr, invalidValue } from "../../option-checks.ts";
import { systemRandom, type Random } from "../../runtime/random.ts";
import type { Connection } from "./clients/connection.ts";

/** The options of both `redis()` and `redlock()`. */
interface CommonOptions {
  /** The prefix of every key. @defaultValue "lock:" */
  prefix?: string | undefined;
  /** How long one command may take before it counts as unanswered, ms. @defaultValue 2 000 */
  commandTimeoutMs?: number | undefined;
  /** The validity of a grant by notification until its first extension, ms. @defaultValue 3 000 */
  claimMs?: number | undefined;
  /** The most waiters for one key on the server. Further waiters fail with `too-many-waiters`. @defaultValue 100 000 */
  maxQueue?: number | undefined;
  /** For tests. */
  clock?: Clock | undefined;
  /** For tests. */
  random?: Random | undefined;
}

/** A library whose locks can be observed. */
export type ObservedLibrary = "redisson";

const observedLibraries: readonly ObservedLibrary[] = ["redisson"];

/** The layout of another library, from `holdfast/redis/layouts`. */
export interface RedisLayout {
  readonly name: string;
  /** The prefix of every key without the option `prefix`; undefined: the option is required. */
  readonly defaultPrefix: string | undefined;
  /** Opens the driver. `redis` calls it. */
  readonly open: (connection: Connection, settings: RedisSettings) => Driver;
}

export interface RedisOptions extends CommonOptions {
  /**
   * How many replicas must acknowledge a grant or an extension before it counts, 0 to 100. If fewer acknowledge it, the call fails with
   * `replicas-not-reached`, and the grant is rolled back. A failover can still lose a grant, but less often.
   * @defaultValue 0
   */
  minReplicas?: number | undefined;
  /**
   * Libraries whose locks count as held by another program, if they have the same key: a caller waits, and `inspect` shows the holder.
   * Otherwise such a key is an error (`kind-mismatch`). The other library does not see the locks of this one.
   * @defaultValue none
   */
  observe?: readonly ObservedLibrary[] | undefined;
  /**
   * Stores locks as another library does, so that both libraries exclude each other and wake each other's waiters. The layout determines
   * the kinds of locks and the default of `prefix`. Needs one server, perhaps with sentinels, and excludes `minReplicas` and `observe`.
   * @defaultValue the layout of this library
   */
  layout?: RedisLayout | undefined;
}

export interface RedlockOptions extends CommonOptions {
  /** How long the client waits for the reply of one node, ms. @defaultValue 50 */
  nodeTimeoutMs?: number | undefined;
  /** How far clocks may drift apart during a TTL, as a fraction of the TTL. @defaultValue 0.01 */
  driftFactor?: number | undefined;
  /**
   * The largest TTL that any client uses on these nodes, ms. After a restart a node does not vote for this time plus
   * 3 × `maxClockDifferenceMs` and 2.4 s, because the node may have lost valid grants. All clients of the nodes must use the same value. @defaultValue 60 000
   */
  maxTtlMs?: number | undefined;
  /**
   * How far the clocks of two nodes may differ, ms. A node with a larger difference does not vote. The next holder after an expired
   * holder waits three times as long. All clients of the nodes must use the same value. @defaultValue 200
   */
  maxClockDifferenceMs?: number | undefined;
  /**
   * How long a node retains the fencing counter of a free lock, ms. At least the largest TTL plus the wait after it, because the counter
   * also has the votes of the node. @defaultValue 3 600 000
   */
  fenceRetentionMs?: number | undefined;
  /**
   * When a restarted node votes again.
   *
   * - `"wait"`: after the time that `maxTtlMs` states, whatever the node's settings are.
   * - `"trust-durable"`: at once, if this client saw the run before the restart as a master that writes each change to its disk before its
   *   reply (`appendonly yes`, `appendfsync always`, `no-appendfsync-on-rewrite no`, no rewrite in progress), and sees the same now, with
   *   the same folder and name of the file, and without a rewrite since the restart.
   *   Otherwise as with `"wait"`, also at the first contact, and if the node refuses `CONFIG GET`. The client reads the settings once a
   *   minute. So the operator promises that a node never loses these settings in between, and that its system and disk keep what `fsync`
   *   has written. If the promise is broken, a lock may have two holders.
   * - `"off"`: at once, so a lock may have two holders. For tests.
   *
   * @defaultValue "wait"
   */
  restartGuard?: "wait" | "trust-durable" | "off" | undefined;
}

export type RestartGuardPolicy = NonNullable<RedlockOptions["restartGuard"]>;

const restartGuardPolicies: readonly RestartGuardPolicy[] = ["wait", "trust-durable", "off"];

/** The parsed options of both drivers. */
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
  readonly observe: readonly ObservedLibrary[];
  readonly layout: RedisLayout | undefined;
}

export interface RedlockSettings extends RedisSettings {
  readonly nodeTimeoutMs: number;
  readonly driftFactor: number;
  readonly maxTtlMs: number;
  readonly maxClockDifferenceMs: number;
  readonly retentionMs: number;
  readonly restartGuard: RestartGuardPolicy;
}

const redisNames = ["prefix", "commandTimeoutMs", "claimMs", "maxQueue", "clock", "random"];
const dayMs = 86_400_000;

/** @throws {TypeError | RangeError} with the option, the expected value and the actual value */
export function resolveRedis(options: RedisOptions | undefined): OneServerSettings {
  const given = objectOf(options, [...redisNames, "minReplicas", "observe", "layout"]);
  const minReplicas = integerOr(0, "minReplicas", given.minReplicas, [0, 100]);
  const { observe = [] } = given;
  if (!Array.isArray(observe) || observe.some((library) => !observedLibraries.includes(library))) {
    throw invalidValue("observe", `an array with any of: ${observedLibraries.join(", ")}`, observe);
  }
  const { layout } = given;
  if (layout !== undefined) {
    assertLayout(layout, given);
  }
  return { ...settingsOf(given, layout?.defaultPrefix), minReplicas, observe, layout };
}

function assertLayout(layout: RedisLayout, { minReplicas = 0, observe = [], prefix }: RedisOptions): void {
  if (typeof (layout as unknown) !== "object" || typeof layout.open !== "function") {
    throw invalidValue("layout", "a layout of holdfast/redis/layouts", layout);
  } else if (minReplicas > 0 || observe.length > 0) {
    throw new TypeError("Expected `layout` to be given without `minReplicas` and `observe`");
  } else if (prefix === undefined && layout.defaultPrefix === undefined) {
    throw new TypeError(
      `Expected \`prefix\` to be given, because the layout "${layout.name}" has no default`,
    );
  }
}

/** @throws {TypeError | RangeError} with the option, the expected value and the actual value */
export function resolveRedlock(options: RedlockOptions | undefined): RedlockSettings {
  if (options && "layout" in options) {
    throw new TypeError(
      "Expected `layout` to be given to `redis` only, because a quorum needs its own layout",
    );
  }
  const given = objectOf(options, [
    ...redisNames,
    "nodeTimeoutMs",
    "driftFactor",
    "maxTtlMs",
    "maxClockDifferenceMs",
    "fenceRetentionMs",
    "restartGuard",
  ]);
  const { driftFactor = 0.01, restartGuard = "wait" } = given;
  if (typeof driftFactor !== "number" || !(driftFactor >= 0 && driftFactor <= 0.5)) {
    throw invalidValue("driftFactor", "a fraction from 0 to 0.5", driftFactor);
  }
  if (!restartGuardPolicies.includes(restartGuard)) {
    throw invalidValue("restartGuard", `one of ${restartGuardPolicies.join(", ")}`, restartGuard);
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
    restartGuard,
  };
}

/**
 * How long a node waits after an expired holder before its next vote: three times the largest clock difference. The node's clock may
 * have been late by one difference at its first vote, and may be early by one now. The two nodes compared with differ by a third one.
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

function settingsOf(given: CommonOptions, defaultPrefix = "lock:"): RedisSettings {
  const { prefix } = given;
  if (prefix !== undefined && (typeof prefix !== "string" || /\p{Surrogate}/u.test(prefix))) {
    throw invalidValue("prefix", "a string of well-formed UTF-8", prefix);
  }
  return {
    prefix: prefix ?? defaultPrefix,
    clock: given.clock ?? systemClock,
    random: given.random ?? systemRandom,
    commandTimeoutMs: integerOr(2_000, "commandTimeoutMs", given.commandTimeoutMs, [10, 600_000]),
    claimMs: integerOr(3_000, "claimMs", given.claimMs, [100, dayMs]),
    queueBound: integerOr(100_000, "maxQueue", given.maxQueue, [1, 10_000_000]),
  };
}
