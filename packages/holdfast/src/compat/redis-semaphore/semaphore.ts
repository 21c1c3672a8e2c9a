import type { Lease } from "../../lease/lease.ts";
import { checkInteger, checkKey } from "../../option-checks.ts";
import type { AcquireOptions } from "../../options.ts";
import { BaseLock } from "./base-lock.ts";
import type { LockOptions } from "./options.ts";
import { SemaphoreKeyGuard } from "./semaphore-key-guard.ts";
import { locksOf, type RedisClient } from "./clients.ts";

interface Permits {
  readonly kind: string;
  readonly limit: number;
  readonly permits: number;
}

/** A semaphore with permits under `holdfast-semaphore:<key>`. */
abstract class PermitLock extends BaseLock {
  readonly #guard: SemaphoreKeyGuard;

  protected constructor(client: RedisClient, key: string, own: Permits, options: LockOptions | undefined) {
    const { kind, limit, permits } = own;
    const locks = locksOf(client);
    const guard = new SemaphoreKeyGuard(client, `semaphore:${checkKey(key)}`);
    const semaphore = locks.semaphore(`holdfast-semaphore:${key}`, { limit });
    const acquire = async (acquireOptions: AcquireOptions): Promise<Lease> => {
      await guard.claim();
      const lease = await semaphore.acquire({ ...acquireOptions, permits });
      try {
        await guard.confirm();
      } catch (error) {
        await lease.release().catch(() => false);
        throw error;
      }
      guard.startRenewals(() => this.isAcquired);
      return lease;
    };
    super({ kind, key: guard.key, locks, maxTtlMs: 86_400_000, acquire }, options);
    this.#guard = guard;
  }

  override async release(): Promise<void> {
    try {
      await super.release();
    } finally {
      if (!this.isAcquired) {
        this.#guard.stopRenewals();
      }
    }
  }
}

/**
 * A semaphore with at most `limit` holders. A key that redis-semaphore has in use is refused with `kind-mismatch`. Redis refuses
 * commands of redis-semaphore on a key that is in use here, and 60 s longer.
 */
export class Semaphore extends PermitLock {
  /**
   * @param limit 1 to 1 000 000; all callers must name the same limit
   * @throws {TypeError | RangeError} an argument is invalid
   */
  constructor(client: RedisClient, key: string, limit: number, options?: LockOptions) {
    super(client, key, { kind: "semaphore", limit, permits: 1 }, options);
  }
}

/** A semaphore that acquires several permits at once. It shares its permits with each {@link Semaphore} of the same key. */
export class MultiSemaphore extends PermitLock {
  /**
   * @param limit 1 to 1 000 000; all callers must name the same limit
   * @param permits 1 to `limit`
   * @throws {TypeError | RangeError} an argument is invalid
   */
  constructor(client: RedisClient, key: string, limit: number, permits: number, options?: LockOptions) {
    super(
      client,
      key,
      { kind: "multi-semaphore", limit, permits: checkInteger("permits", permits, 1, limit) },
      options,
    );
  }
}
