import type { Contention } from "../local/coordinator.ts";
import { lockable, type Lockable, type Runner, type Way } from "./lockable.ts";
import { checkInteger, type AcquireOptions, type ResolvedAcquire } from "../options.ts";
import type { MutexLease, Mutexes } from "./mutex.ts";

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

const largestLimit = 1_000_000;

export function checkLimit(limit: unknown): number {
  return checkInteger("limit", limit, 1, largestLimit);
}

export function semaphore(
  key: string,
  options: { readonly limit: number; readonly defaults: ResolvedAcquire },
  house: { readonly mutexes: Mutexes; readonly runner: Runner; readonly contention: Contention },
): Semaphore {
  const { mutexes, runner, contention } = house;
  let { limit } = options;
  const sharing = (permits: number | undefined, resolved: ResolvedAcquire): ResolvedAcquire => ({
    ...resolved,
    share: {
      kind: "semaphore",
      permits: permits === undefined ? 1 : checkInteger("permits", permits, 1, limit),
      limit,
    },
  });
  const way: Way<PermitOptions, ResolvedAcquire, MutexLease> = {
    resolve: ({ permits, ...rest } = {}) => sharing(permits, mutexes.resolve(rest, options.defaults)),
    resolveTry: ({ permits, ...rest } = {}) => sharing(permits, mutexes.resolveTry(rest, options.defaults)),
    acquire: (resolved) => mutexes.acquire(key, resolved),
    try: (resolved) => mutexes.try(key, resolved),
  };
  return {
    ...lockable(way, runner),
    async setLimit(wanted) {
      const checked = checkLimit(wanted);
      contention.refuseClosed(key);
      await contention.driver.setLimit(key, checked);
      limit = checked;
    },
  };
}
