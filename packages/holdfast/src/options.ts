import { hostname } from "node:os";
import { basename } from "node:path";

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
  checkText,
  checkTtl,
} from "./option-checks.ts";

/** How a lease is asked for and kept. All times are milliseconds. */
export interface AcquireOptions {
  /**
   * How long the engine keeps the grant without renewal: 100 to 86 400 000. With `renew` it is the time in which a crash is noticed.
   * @defaultValue 30 000
   */
  ttlMs?: number | undefined;
  /**
   * How long to wait; 0: ask once, then `wait-timeout`; `Infinity` is allowed.
   * @defaultValue 10 000
   */
  waitMs?: number | undefined;
  /** Ends the waiting: rejects with the signal's reason and leaves the queue. No effect after the grant. */
  signal?: AbortSignal | undefined;
  /**
   * Whether the watchdog renews at `ttlMs / 3`.
   * @defaultValue true
   */
  renew?: boolean | undefined;
  /**
   * Renewal ends there: the lease is then lost, reason `max-hold`. `Infinity` is allowed.
   * @defaultValue 86 400 000
   */
  maxHoldMs?: number | undefined;
  /**
   * `"continue"`: at a loss the signal is not aborted and `withLock` does not reject; `throwIfLost()` tells the truth all the same.
   * @defaultValue "abort"
   */
  ifLost?: "abort" | "continue" | undefined;
  /** Who we are, told by `inspect`, `list` and in held errors; by default that of the instance. */
  owner?: string | undefined;
  /** Why the lock is held, told beside the owner. */
  reason?: string | undefined;
  /** Told beside the owner; at most 32. */
  labels?: Readonly<Record<string, string>> | undefined;
  /**
   * The caller's own idempotency key. A repeated acquire with it, by the same `Locks`, shares the grant of the first: with the same
   * fencing token, and kept as the first one said. The lock is free when the last of them is released. In another process the same
   * `attemptId` is an ordinary contender.
   * @defaultValue none: every acquire is an attempt of its own
   */
  attemptId?: string | undefined;
}

export type TryOptions = Omit<AcquireOptions, "waitMs">;

export interface LocksOptions {
  /**
   * How far the callers of one process may pass a lease on in memory before other processes get their turn.
   * At most 64 in a row, whatever `max` is. `false`: every caller has its own place on the server, strict order of arrival.
   * @defaultValue `{ max: 16, maxMs: 100 }`
   */
  handover?: { max?: number | undefined; maxMs?: number | undefined } | false | undefined;
  /**
   * Who we are, in `inspect`, `list` and held errors.
   * @defaultValue the program's name `@host:pid`
   */
  owner?: string | undefined;
  /**
   * How many callers of this process may wait for one key; then `too-many-waiters`.
   * @defaultValue 10 000
   */
  maxWaiters?: number | undefined;
  /**
   * What `close()` could not release by then expires.
   * @defaultValue 2 000
   */
  closeTimeoutMs?: number | undefined;
  /** For every acquire of this instance. */
  defaults?: AcquireOptions | undefined;
}

export interface AdoptOptions {
  /** Whether the watchdog renews. @defaultValue true */
  renew?: boolean | undefined;
  /** TTL of the renewals. @defaultValue that of the lease */
  ttlMs?: number | undefined;
  /** From the adoption on. @defaultValue 86 400 000 */
  maxHoldMs?: number | undefined;
}

export interface ListOptions {
  /** Only keys that begin so. @defaultValue "" */
  prefix?: string | undefined;
  /** Where the last page ended. */
  cursor?: string | undefined;
  /** About how many a page has, 1 to 1 000. @defaultValue 100 */
  limit?: number | undefined;
  /** Stops the search between two steps: the call rejects with its reason. */
  signal?: AbortSignal | undefined;
}

export interface ResolvedAcquire {
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  readonly renew: boolean;
  readonly maxHoldMs: number;
  readonly ifLost: "abort" | "continue";
  readonly info: HolderInfo | undefined;
  readonly attemptId: string | undefined;
  /** Undefined: a mutex. */
  readonly lockMode?: LockMode | undefined;
  /** Its place in the queue, where it came before it asks; undefined: that of when it asks. */
  readonly ticket?: number | undefined;
}

export interface ResolvedLocks {
  readonly handover: { readonly max: number; readonly maxMs: number } | false;
  readonly owner: string;
  readonly maxWaiters: number;
  readonly closeTimeoutMs: number;
  readonly defaults: ResolvedAcquire;
}

const dayMs = 86_400_000;

const acquireDefaults: ResolvedAcquire = {
  ttlMs: 30_000,
  waitMs: 10_000,
  signal: undefined,
  renew: true,
  maxHoldMs: dayMs,
  ifLost: "abort",
  info: undefined,
  attemptId: undefined,
};

/** Checks each value once; what comes out is trusted. Without options it is the defaults themselves. */
export function resolveAcquire(
  options: AcquireOptions | undefined,
  defaults: ResolvedAcquire,
  limits: { readonly maxTtlMs: number; readonly tryOnly?: boolean },
): ResolvedAcquire {
  if (options === undefined) {
    return defaults;
  }
  checkOptionNames(options, limits.tryOnly === true ? tryNames : acquireNames);
  const { ttlMs, waitMs, renew, maxHoldMs, ifLost, attemptId, signal } = options;
  return {
    ttlMs: ttlMs === undefined ? defaults.ttlMs : checkTtl("ttlMs", ttlMs, limits.maxTtlMs),
    waitMs: waitMs === undefined ? defaults.waitMs : checkDuration("waitMs", waitMs, 0),
    signal: signal === undefined ? defaults.signal : checkSignal("signal", signal),
    renew: renew === undefined ? defaults.renew : checkBoolean("renew", renew),
    maxHoldMs: maxHoldMs === undefined ? defaults.maxHoldMs : checkDuration("maxHoldMs", maxHoldMs, 1),
    ifLost: ifLost === undefined ? defaults.ifLost : checkIfLost(ifLost),
    attemptId: attemptId === undefined ? defaults.attemptId : checkText("attemptId", attemptId, 512),
    info: resolveHolderInfo(options, defaults.info),
    lockMode: defaults.lockMode,
  };
}

export function resolveLocks(options: LocksOptions = {}, maxTtlMs: number): ResolvedLocks {
  checkOptionNames(options, ["handover", "owner", "maxWaiters", "closeTimeoutMs", "defaults"]);
  const { handover, owner = defaultOwner(), maxWaiters = 10_000, closeTimeoutMs = 2_000, defaults } = options;
  assertNoAttemptId(defaults);
  const instanceDefaults = { ...acquireDefaults, ttlMs: Math.min(acquireDefaults.ttlMs, maxTtlMs) };
  return {
    handover: resolveHandover(handover),
    owner: checkText("owner", owner, 512),
    maxWaiters: checkInteger("maxWaiters", maxWaiters, 1, 10_000_000),
    closeTimeoutMs: checkInteger("closeTimeoutMs", closeTimeoutMs, 0, dayMs),
    defaults: resolveAcquire(defaults, instanceDefaults, { maxTtlMs }),
  };
}

/** An attempt is one acquire: as a default it would make all callers share one grant. */
export function assertNoAttemptId(defaults: AcquireOptions | undefined): void {
  if (defaults?.attemptId !== undefined) {
    throw new TypeError("Expected `attemptId` to be given with an acquire, not among the defaults");
  }
}

/** @param defaultTtlMs that of the lease */
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

const tryNames = "ttlMs signal renew maxHoldMs ifLost owner reason labels attemptId".split(" ");
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

function defaultOwner(): string {
  const program = basename(process.argv[1] ?? process.title) || "node";
  return `${program}@${hostname()}:${process.pid}`;
}
