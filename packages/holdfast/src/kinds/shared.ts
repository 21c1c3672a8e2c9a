import type { LocalCoordinator } from "../local/coordinator.ts";
import { type AcquireStrategy, lockable, type Lockable, type LockRunner } from "./lockable.ts";
import { checkInteger } from "../option-checks.ts";
import type { AcquireOptions, ResolvedAcquire } from "../options.ts";
import type { KeyAcquirer, MutexLease } from "./key-acquirer.ts";
import type { WriteLease } from "../lease/lease.ts";

/** Options of one acquire of a semaphore. */
export interface PermitOptions extends AcquireOptions {
  /** How many permits the lease holds, 1 to the limit. @defaultValue 1 */
  permits?: number | undefined;
}

/** The limit of a semaphore, and the defaults of its acquires. */
export interface SemaphoreOptions extends AcquireOptions {
  /** How many permits exist, 1 to 1 000 000. Callers with another limit are refused: `limit-mismatch`. */
  limit: number;
}

/**
 * A lock with `limit` permits. At most `limit` permits are in use at any time. Requests are served in order of arrival, so a request
 * for few permits never overtakes one for many. Within a process, grants are handed over between callers with equal `permits`.
 */
export interface Semaphore extends Lockable<PermitOptions> {
  /**
   * Changes the limit while the semaphore is in use. Callers that already wait use the new limit. Other `Semaphore` objects must be
   * created again with the new limit, else their calls reject with `limit-mismatch`. No effect while idle. Present grants keep their permits, and may still be handed over within the bounds of
   * `handover`.
   * @throws {EngineError} the engine does not reply within its command budget
   */
  setLimit(limit: number): Promise<void>;
}

const maxLimit = 1_000_000;

export function checkLimit(limit: unknown): number {
  return checkInteger("limit", limit, 1, maxLimit);
}

export function semaphore(
  key: string,
  options: { readonly limit: number; readonly defaults: ResolvedAcquire },
  deps: {
    readonly acquirer: KeyAcquirer;
    readonly runner: LockRunner;
    readonly coordinator: LocalCoordinator;
  },
): Semaphore {
  const { acquirer, runner, coordinator } = deps;
  let { limit } = options;
  const lockMode = (permits: number | undefined, resolved: ResolvedAcquire): ResolvedAcquire => ({
    ...resolved,
    lockMode: {
      kind: "semaphore",
      permits: permits === undefined ? 1 : checkInteger("permits", permits, 1, limit),
      limit,
    },
  });
  const strategy: AcquireStrategy<PermitOptions, ResolvedAcquire, MutexLease> = {
    resolve: ({ permits, ...rest } = {}) => lockMode(permits, acquirer.resolve(rest, options.defaults)),
    resolveTry: ({ permits, ...rest } = {}) => lockMode(permits, acquirer.resolveTry(rest, options.defaults)),
    acquire: (resolved) => acquirer.acquire(key, resolved),
    try: (resolved) => acquirer.try(key, resolved),
  };
  return {
    ...lockable(strategy, runner),
    async setLimit(requested) {
      const checked = checkLimit(requested);
      coordinator.checkKey(key);
      coordinator.assertOpen(key);
      await coordinator.driver.setLimit(key, checked);
      limit = checked;
    },
  };
}

/**
 * A lock for many readers or one writer, in order of arrival. A later reader never overtakes a waiting writer.
 * Adjacent readers at the head of the queue are granted together.
 */
export interface ReadWrite {
  /** Acquires for reading. */
  readonly read: Lockable;
  /** Acquires for writing. */
  readonly write: Lockable<AcquireOptions, WriteLease>;
}

export function readWrite(
  key: string,
  defaults: ResolvedAcquire,
  acquirer: KeyAcquirer,
  runner: LockRunner,
): ReadWrite {
  const strategy = (mode: "read" | "write") =>
    acquirer.strategy(key, { ...defaults, lockMode: { kind: "read-write", mode } });
  return { read: lockable(strategy("read"), runner), write: lockable(strategy("write"), runner) };
}
