import type { AcquireTrace } from "./diagnostics.ts";
import type { RenewalBackupStarter } from "./lease/watchdog.ts";
import type { HolderInfo, LockMode } from "./driver.ts";
import {
  checkBoolean,
  checkDuration,
  checkHolderInfo,
  checkIfLost,
  checkInteger,
  checkObject,
  checkOptionNames,
  checkSignal,
  checkNote,
  checkText,
  checkTtl,
  invalidValue,
} from "./option-checks.ts";
import { resolveHold } from "./hold-options.ts";
import { processName } from "./runtime/node-modules.ts";

/** Options of one acquire, and of the lease that it returns. All times are milliseconds. */
export interface AcquireOptions {
  /**
   * The time after which the engine ends a grant that is not renewed: 100 to 86 400 000. After a crash of the holder, the lock is free
   * after at most this time.
   * @defaultValue 30 000
   */
  ttlMs?: number | undefined;
  /**
   * The longest wait. With 0 the call tries once, and rejects with `wait-timeout` if the lock is held. `Infinity` is allowed.
   * @defaultValue 10 000
   */
  waitMs?: number | undefined;
  /**
   * The cancellation signal, the caller's own: it aborts the wait. The call leaves the queue and rejects with the signal's reason. No effect
   * after the grant, whose end `lease.signal` reports.
   */
  signal?: AbortSignal | undefined;
  /**
   * Whether the watchdog renews the lease each time that `ttlMs / 3` has passed. Without renewal the lease expires after `ttlMs`.
   * @defaultValue true
   */
  renew?: boolean | undefined;
  /**
   * The longest life of the lease. Afterwards the lease is lost with the reason `max-hold`. `Infinity` is allowed.
   * @defaultValue 86 400 000, a day: work that hangs must not hold its lock for the life of the process, and hardly any work takes longer
   */
  maxHoldMs?: number | undefined;
  /**
   * Keeps the key taken for at least this long after the grant, even after `release()` or the end of the process: 0 to the largest TTL. Use
   * it when the clocks of machines differ and a job is short. Until then the lock is not handed over in memory. After a crash, `ttlMs`
   * applies instead.
   * @defaultValue 0
   */
  minHoldMs?: number | undefined;
  /**
   * With `"continue"` a loss does not abort the signal, and `withLock` does not reject. `throwIfLost()` still throws.
   * @defaultValue "abort"
   */
  ifLost?: "abort" | "continue" | undefined;
  /**
   * The holder's name in `inspect`, `list` and a `WaitTimeoutError`, at most 512 bytes.
   * @defaultValue the owner of the `Locks`
   */
  owner?: string | undefined;
  /** Why the lock is held, at most 1 024 bytes. It is shown with the owner. */
  reason?: string | undefined;
  /** At most 32 labels, with names of at most 64 bytes and values of at most 256 bytes. They are shown with the owner. */
  labels?: Readonly<Record<string, string>> | undefined;
  /**
   * The caller's own idempotency key, at most 512 bytes. In the same `Locks`, a repeated acquire with the same `attemptId` shares the
   * grant, fencing token, TTL and renewal of the first acquire. The lock is free when the last of these leases is released.
   * In another process the same `attemptId` is an ordinary contender.
   * @defaultValue none: every acquire is a separate attempt
   */
  attemptId?: string | undefined;
}

/** Options of a try: those of an acquire, without `waitMs`. */
export type TryOptions = Omit<AcquireOptions, "waitMs">;

/** Options of one `Locks`. */
export interface LocksOptions {
  /**
   * How often (`max`), and for how long (`maxMs`, ms), a grant may be handed over within this process while other processes wait.
   * At most 64 hand-overs happen in a row. With `false` every caller has its own queue entry at the engine, so that callers of
   * all processes are served in order of arrival.
   * @defaultValue `{ max: 16, maxMs: 100 }`
   */
  handover?: { max?: number | undefined; maxMs?: number | undefined } | false | undefined;
  /**
   * The name of this process in `inspect`, `list` and a `WaitTimeoutError`, at most 512 bytes.
   * @defaultValue `program@host:pid`
   */
  owner?: string | undefined;
  /**
   * How many callers of this process may wait for one key. Further calls reject with `too-many-waiters`.
   * @defaultValue 10 000
   */
  maxWaiters?: number | undefined;
  /**
   * How long `close()` waits for releases, ms. A lease that is not released by then expires.
   * @defaultValue 2 000
   */
  closeTimeoutMs?: number | undefined;
  /**
   * Renews leases while the event loop is blocked: `watchdogThread` of `holdfast/watchdog-thread`.
   * @defaultValue none: a blocked event loop loses leases after their TTL
   */
  watchdog?: RenewalBackupStarter | undefined;
  /** Defaults of every acquire of this `Locks`. `attemptId` is refused here. */
  defaults?: AcquireOptions | undefined;
}

/** Options of `Locks.adopt`. */
export interface AdoptOptions {
  /** Whether the watchdog renews the lease. @defaultValue true */
  renew?: boolean | undefined;
  /** The TTL of extensions, ms. @defaultValue the TTL of the transferred lease */
  ttlMs?: number | undefined;
  /** The longest life of the lease after the adoption, ms. @defaultValue 86 400 000 */
  maxHoldMs?: number | undefined;
}

/** Options of `LocksAdmin.list`. */
export interface ListOptions {
  /** Lists only keys with this prefix. @defaultValue "" */
  prefix?: string | undefined;
  /** The cursor from the page before. @defaultValue the first page */
  cursor?: string | undefined;
  /** The approximate size of a page, 1 to 1 000. @defaultValue 100 */
  limit?: number | undefined;
  /** Aborts the search between two steps: the call rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

export interface ResolvedAcquire {
  readonly ttlMs: number;
  /** The TTL of the request, if it is longer than that of renewals. */
  readonly firstTtlMs?: number | undefined;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  readonly renew: boolean;
  readonly maxHoldMs: number;
  readonly minHoldMs: number;
  readonly ifLost: "abort" | "continue";
  readonly info: HolderInfo | undefined;
  readonly attemptId: string | undefined;
  /** Undefined for a mutex. */
  readonly lockMode?: LockMode | undefined;
  /** The context of the call in diagnostics, if `holdfast:acquire` has subscribers. */
  readonly trace?: AcquireTrace | undefined;
  /** The ticket from the arrival of the call. Undefined: the call gets its ticket when it requests the lock. */
  readonly ticket?: number | undefined;
}

export interface ResolvedLocks {
  readonly handover: { readonly max: number; readonly maxMs: number } | false;
  readonly owner: string;
  readonly maxWaiters: number;
  readonly closeTimeoutMs: number;
  readonly watchdog: RenewalBackupStarter | undefined;
  readonly defaults: ResolvedAcquire;
}

const dayMs = 86_400_000;

const acquireDefaults: ResolvedAcquire = {
  ttlMs: 30_000,
  waitMs: 10_000,
  signal: undefined,
  renew: true,
  maxHoldMs: dayMs,
  minHoldMs: 0,
  ifLost: "abort",
  info: undefined,
  attemptId: undefined,
  lockMode: undefined,
  trace: undefined,
};

/** Validates every option, once. Without options the result is `defaults` itself. */
export function resolveAcquire(
  options: AcquireOptions | undefined,
  defaults: ResolvedAcquire,
  limits: { readonly maxTtlMs: number; readonly tryOnly?: boolean },
): ResolvedAcquire {
  if (options === undefined) {
    return defaults;
  }
  checkOptionNames(options, limits.tryOnly === true ? tryNames : acquireNames);
  const { ttlMs, waitMs, renew, ifLost, attemptId, signal } = options;
  const { maxHoldMs, minHoldMs } = resolveHold(options, defaults, limits.maxTtlMs);
  return {
    ttlMs: ttlMs === undefined ? defaults.ttlMs : checkTtl("ttlMs", ttlMs, limits.maxTtlMs),
    waitMs: waitMs === undefined ? defaults.waitMs : checkDuration("waitMs", waitMs, 0),
    signal: signal === undefined ? defaults.signal : checkSignal("signal", signal),
    renew: renew === undefined ? defaults.renew : checkBoolean("renew", renew),
    maxHoldMs,
    minHoldMs,
    ifLost: ifLost === undefined ? defaults.ifLost : checkIfLost(ifLost),
    attemptId: attemptId === undefined ? defaults.attemptId : checkText("attemptId", attemptId, 512),
    info: resolveHolderInfo(options, defaults.info),
    lockMode: defaults.lockMode,
    trace: undefined,
  };
}

export function resolveLocks(options: LocksOptions = {}, maxTtlMs: number): ResolvedLocks {
  checkOptionNames(options, ["handover", "owner", "maxWaiters", "closeTimeoutMs", "watchdog", "defaults"]);
  const {
    handover,
    owner = processName(),
    maxWaiters = 10_000,
    closeTimeoutMs = 2_000,
    watchdog,
    defaults,
  } = options;
  if (
    watchdog !== undefined &&
    typeof (watchdog as Partial<RenewalBackupStarter> | null)?.start !== "function"
  ) {
    throw invalidValue("watchdog", "the result of `watchdogThread`", watchdog);
  }
  assertNoAttemptId(defaults);
  const instanceDefaults = { ...acquireDefaults, ttlMs: Math.min(acquireDefaults.ttlMs, maxTtlMs) };
  return {
    handover: resolveHandover(handover),
    owner: checkNote("owner", owner, 512),
    maxWaiters: checkInteger("maxWaiters", maxWaiters, 1, 10_000_000),
    closeTimeoutMs: checkInteger("closeTimeoutMs", closeTimeoutMs, 0, dayMs),
    watchdog,
    defaults: resolveAcquire(defaults, instanceDefaults, { maxTtlMs }),
  };
}

/** An `attemptId` as a default would make all callers share one grant. @throws {TypeError} */
export function assertNoAttemptId(defaults: AcquireOptions | undefined): void {
  if (defaults?.attemptId !== undefined) {
    throw new TypeError("Expected `attemptId` as an option of an acquire, not as a default");
  }
}

/** @param defaultTtlMs the TTL of the transferred lease */
export function resolveAdopt(
  options: AdoptOptions = {},
  defaultTtlMs: number,
  maxTtlMs: number,
): { renew: boolean; ttlMs: number; maxHoldMs: number } {
  checkOptionNames(options, ["renew", "ttlMs", "maxHoldMs"]);
  const { renew = true, ttlMs = defaultTtlMs, maxHoldMs = dayMs } = options;
  return {
    renew: checkBoolean("renew", renew),
    ttlMs: checkTtl("ttlMs", ttlMs, maxTtlMs),
    maxHoldMs: checkDuration("maxHoldMs", maxHoldMs, 1),
  };
}

export function resolveList(options: ListOptions = {}): {
  prefix: string;
  cursor: string | null;
  limit: number;
  signal: AbortSignal | undefined;
} {
  checkOptionNames(options, ["prefix", "cursor", "limit", "signal"]);
  const { prefix = "", cursor, limit = 100, signal } = options;
  return {
    signal: signal === undefined ? undefined : checkSignal("signal", signal),
    prefix: prefix === "" ? "" : checkText("prefix", prefix, 512),
    cursor: cursor === undefined ? null : checkText("cursor", cursor, 1024),
    limit: checkInteger("limit", limit, 1, 1000),
  };
}

const tryNames = "ttlMs signal renew maxHoldMs minHoldMs ifLost owner reason labels attemptId".split(" ");
const acquireNames: readonly string[] = [...tryNames, "waitMs"];

function resolveHolderInfo(
  options: AcquireOptions,
  defaults: HolderInfo | undefined,
): HolderInfo | undefined {
  const inherited = defaults ?? {};
  const { owner = inherited.owner, reason = inherited.reason, labels = inherited.labels } = options;
  const isOwn = owner !== inherited.owner || reason !== inherited.reason || labels !== inherited.labels;
  return isOwn ? checkHolderInfo({ owner, reason, labels }) : defaults;
}

function resolveHandover(handover: LocksOptions["handover"] = {}): ResolvedLocks["handover"] {
  if (handover === false) {
    return false;
  }
  checkObject("handover", handover);
  checkOptionNames(handover, ["max", "maxMs"]);
  const { max = 16, maxMs = 100 } = handover;
  return {
    max: checkInteger("handover.max", max, 0, 10_000),
    maxMs: checkInteger("handover.maxMs", maxMs, 0, dayMs),
  };
}
