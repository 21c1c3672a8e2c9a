import type { Lease, Locks } from "holdfast";

/** The interface of a provider for Medusa's locking module, `ILockingProvider` of @medusajs/types 2.21. Times are seconds. */
export interface MedusaLockingProvider {
  execute<T>(
    keys: string | string[],
    job: (signal?: AbortSignal) => Promise<T>,
    args?: { timeout?: number; expire?: number },
  ): Promise<T>;
  acquire(keys: string | string[], args?: { ownerId?: string | null; expire?: number }): Promise<void>;
  release(keys: string | string[], args?: { ownerId?: string | null }): Promise<boolean>;
  releaseAll(args?: { ownerId?: string | null }): Promise<void>;
}

/** The owner of a lock that any caller may extend and release. */
const noOwner = "medusa:*";

/** Locks of all keys or of none. Several processes may have the same owner. */
export class HoldfastLockingProvider implements MedusaLockingProvider {
  static readonly identifier = "holdfast";
  readonly #locks: Locks;
  /** The leases of this process, by their keys. */
  readonly #leases = new Map<string, Lease>();

  constructor(locks: Locks) {
    this.#locks = locks;
  }

  execute<T>(
    keys: string | string[],
    job: (signal?: AbortSignal) => Promise<T>,
    { timeout = 5, expire = 60 }: { timeout?: number; expire?: number } = {},
  ): Promise<T> {
    const options = { waitMs: millis(timeout), ttlMs: millis(expire) };
    return this.#locks.all(names(keys), options).withLock((lease) => job(lease.signal));
  }

  /**
   * Acquires all keys or none, and extends those that the owner has. A lock without `expire` is renewed while this process lives.
   * @throws {WaitTimeoutError} another owner has one of the keys
   */
  async acquire(
    keys: string | string[],
    { ownerId, expire }: { ownerId?: string | null; expire?: number } = {},
  ): Promise<void> {
    const owner = ownerOf(ownerId);
    const term = expire === undefined ? { maxHoldMs: Infinity } : { ttlMs: millis(expire), renew: false };
    const acquired: Lease[] = [];
    try {
      for (const key of names(keys).sort()) {
        const own = this.#leaseOf(key);
        if (own?.owner === owner) {
          await own.extend(term.ttlMs);
        } else {
          acquired.push(await this.#locks.acquire(key, { ...term, owner, waitMs: 0 }));
        }
      }
    } catch (error) {
      await Promise.all(acquired.map((lease) => lease.release()));
      throw error;
    }
    for (const lease of acquired) this.#leases.set(lease.key, lease);
  }

  /** @returns whether the owner had all keys */
  async release(keys: string | string[], { ownerId }: { ownerId?: string | null } = {}): Promise<boolean> {
    const results = await Promise.all(names(keys).map((key) => this.#release(key, ownerOf(ownerId))));
    return !results.includes(false);
  }

  /** Without an owner this releases the locks of this process; with an owner, the owner's locks in all processes. */
  async releaseAll({ ownerId }: { ownerId?: string | null } = {}): Promise<void> {
    const owner = ownerId === undefined || ownerId === null ? undefined : ownerOf(ownerId);
    const ended = [...this.#leases].filter(([, lease]) => owner === undefined || lease.owner === owner);
    for (const [key] of ended) this.#leases.delete(key);
    await Promise.all(ended.map(([, lease]) => lease.release()));
    if (owner !== undefined) await this.#locks.admin.breakOwner(owner, { reason: "releaseAll of its owner" });
  }

  /** The lease of this process for a key, unless it has ended. */
  #leaseOf(key: string): Lease | undefined {
    const lease = this.#leases.get(key);
    if (lease?.remainingMs() === 0) this.#leases.delete(key);
    return this.#leases.get(key);
  }

  async #release(key: string, owner: string): Promise<boolean> {
    const lease = this.#leaseOf(key);
    if (lease === undefined) return this.#releaseElsewhere(key, owner);
    if (lease.owner !== owner && lease.owner !== noOwner) return false;
    this.#leases.delete(key);
    return lease.release();
  }

  /** Another process of the same owner may have acquired the key. */
  async #releaseElsewhere(key: string, owner: string): Promise<boolean> {
    const [holder] = (await this.#locks.inspect(key)).holders;
    if (holder?.fencingToken === undefined || (holder.owner !== owner && holder.owner !== noOwner))
      return false;
    return this.#locks.admin.breakLock(key, {
      fencingToken: holder.fencingToken,
      reason: "released by its owner",
    });
  }
}

function names(keys: string | string[]): string[] {
  return [...new Set([keys].flat())].map((key) => `medusa:${key}`);
}

function ownerOf(ownerId: string | null | undefined): string {
  return ownerId === null || ownerId === undefined ? noOwner : `medusa:${ownerId}`;
}

function millis(seconds: number): number {
  return Math.max(1, Number.isNaN(seconds) ? 1 : seconds) * 1_000;
}
