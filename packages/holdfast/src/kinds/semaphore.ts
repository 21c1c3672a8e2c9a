import type { LocalCoordinator } from "../local/coordinator.ts";
import { lockable, type Lockable, type LockRunner, type AcquireStrategy } from "./lockable.ts";
import { checkInteger } from "../option-checks.ts";
import type { AcquireOptions, ResolvedAcquire } from "../options.ts";
import type { MutexLease, MutexFactory } from "./mutex.ts";

export interface PermitOptions extends AcquireOptions {
  /** How many permits the lease takes, 1 to the limit. @defaultValue 1 */
  permits?: number | undefined;
}

export interface SemaphoreOptions extends AcquireOptions {
  /** How many permits there are, 1 to 1 000 000. All who use the key have to name the same. */
  limit: number;
}

/**
 * Never more than `limit` permits at once. In order of arrival: who wants many is not passed over by who wants few. Leases are handed
 * over in a process, within the bounds of `handover`, between callers that want as many permits.
 */
export interface Semaphore extends Lockable<PermitOptions> {
  /**
   * From now on the semaphore has this limit, for all who use it; who holds keeps what he has. A process may hand on what it holds, within
   * the bounds of `handover`.
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
    readonly mutexes: MutexFactory;
    readonly runner: LockRunner;
    readonly contention: LocalCoordinator;
  },
): Semaphore {
  const { mutexes, runner, contention: coordinator } = deps;
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
    resolve: ({ permits, ...rest } = {}) => lockMode(permits, mutexes.resolve(rest, options.defaults)),
    resolveTry: ({ permits, ...rest } = {}) => lockMode(permits, mutexes.resolveTry(rest, options.defaults)),
    acquire: (resolved) => mutexes.acquire(key, resolved),
    try: (resolved) => mutexes.try(key, resolved),
  };
  return {
    ...lockable(strategy, runner),
    async setLimit(requested) {
      const checked = checkLimit(requested);
      coordinator.assertOpen(key);
      await coordinator.driver.setLimit(key, checked);
      limit = checked;
    },
  };
}
