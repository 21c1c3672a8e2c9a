import { checkText, checkTtl, invalidValue } from "../../option-checks.ts";
import { systemRandom } from "../../runtime/random.ts";
import type { LostLockError } from "./errors.ts";
import type { Lock } from "./lock.ts";

/** Called once for each loss. `isAcquired` is false then, unless another `acquire` of the same object has succeeded. */
export type LockLostCallback = (this: Lock, error: LostLockError) => void;

/** The times of a lock, ms. */
export interface TimeoutOptions {
  /** The TTL of the lock: an integer from 100 to 86 400 000, and at most 60 000 for `RedlockMutex`. @defaultValue 10 000 */
  lockTimeout?: number | undefined;
  /** The longest wait. With 0 the call tries once. `Infinity` is allowed. @defaultValue 10 000 */
  acquireTimeout?: number | undefined;
  /** At least 1. The wait ends after `(acquireAttemptsLimit - 1) * retryInterval`, so that 1 means a try without a wait. @defaultValue Infinity */
  acquireAttemptsLimit?: number | undefined;
  /** Used only with `acquireAttemptsLimit`, because waiters are notified. @defaultValue 10 */
  retryInterval?: number | undefined;
  /** 0: the lock is not renewed. Any other value: it is renewed every `lockTimeout / 3`. @defaultValue 0.8 × `lockTimeout` */
  refreshInterval?: number | undefined;
}

export interface LockOptions extends TimeoutOptions {
  /** Means `identifier` with `acquiredExternally`. */
  externallyAcquiredIdentifier?: string | undefined;
  /** Appended to the generated identifier. */
  identifierSuffix?: string | undefined;
  /** At most 256 bytes. @defaultValue 32 random hex digits */
  identifier?: string | undefined;
  /**
   * `acquire` continues the mutex that another object has acquired with this `identifier` and with `refreshInterval: 0`.
   * Semaphores refuse the option: `unsupported`.
   */
  acquiredExternally?: true | undefined;
  /** @defaultValue throws the error, as an unhandled rejection */
  onLockLost?: LockLostCallback | undefined;
}

/** The defaults, read by each constructor. */
export const defaultTimeoutOptions: {
  lockTimeout: number;
  acquireTimeout: number;
  acquireAttemptsLimit: number;
  retryInterval: number;
} = {
  lockTimeout: 10_000,
  acquireTimeout: 10_000,
  acquireAttemptsLimit: Number.POSITIVE_INFINITY,
  retryInterval: 10,
};

/** The parsed options. */
export interface LockSettings {
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly renew: boolean;
  readonly identifier: string;
  readonly isExternal: boolean;
  readonly onLockLost: LockLostCallback;
}

/** @throws {TypeError | RangeError} with the option, the expected value and the actual value */
export function resolveLock(options: LockOptions = {}, maxTtlMs: number): LockSettings {
  const { lockTimeout = defaultTimeoutOptions.lockTimeout, refreshInterval = 1 } = options;
  return {
    ttlMs: checkTtl("lockTimeout", lockTimeout, maxTtlMs),
    waitMs: resolveWaitMs(options),
    renew: checkNumber("refreshInterval", refreshInterval, 0) > 0,
    onLockLost: options.onLockLost ?? throwLoss,
    ...resolveIdentifier(options),
  };
}

/** Counts the attempts as time, because one waiting request replaces them. */
function resolveWaitMs(options: TimeoutOptions): number {
  const { acquireTimeout, acquireAttemptsLimit, retryInterval } = {
    ...defaultTimeoutOptions,
    ...definedOf(options),
  };
  checkNumber("acquireTimeout", acquireTimeout, 0);
  checkNumber("acquireAttemptsLimit", acquireAttemptsLimit, 1);
  checkNumber("retryInterval", retryInterval, 0);
  const retriesMs = acquireAttemptsLimit === Infinity ? Infinity : (acquireAttemptsLimit - 1) * retryInterval;
  return Math.ceil(Math.min(acquireTimeout, retriesMs));
}

function resolveIdentifier(options: LockOptions): Pick<LockSettings, "identifier" | "isExternal"> {
  const { identifier, externallyAcquiredIdentifier, acquiredExternally, identifierSuffix = "" } = options;
  const given = identifier ?? externallyAcquiredIdentifier;
  if (given !== undefined) {
    checkText("identifier", given, 256);
  }
  if (acquiredExternally === true && identifier === undefined) {
    throw new TypeError("Expected `identifier` with `acquiredExternally`, got none");
  }
  if (externallyAcquiredIdentifier !== undefined && identifier !== undefined) {
    throw new TypeError("Expected either `identifier` or `externallyAcquiredIdentifier`, got both");
  }
  const suffix = identifierSuffix === "" ? "" : `-${identifierSuffix}`;
  return {
    identifier: given ?? systemRandom.id() + suffix,
    isExternal: acquiredExternally === true || externallyAcquiredIdentifier !== undefined,
  };
}

function definedOf(options: TimeoutOptions): Partial<typeof defaultTimeoutOptions> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function checkNumber(name: string, value: unknown, min: number): number {
  if (typeof value !== "number" || !(value >= min)) {
    throw invalidValue(name, `a number from ${min}`, value);
  }
  return value;
}

function throwLoss(error: LostLockError): never {
  throw error;
}
