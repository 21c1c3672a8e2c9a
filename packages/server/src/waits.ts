import { LockError } from "holdfast";
import type { WireLock } from "holdfast/http";

/** How many of something each principal may have at once. */
export class PrincipalLimit {
  readonly #ofPrincipal = new Map<string, number>();
  readonly #max: number;
  readonly #what: string;

  /** @param what is bounded, in the plural */
  constructor(max: number, what: string) {
    this.#max = max;
    this.#what = what;
  }

  get count(): number {
    return Array.from(this.#ofPrincipal.values()).reduce((sum, count) => sum + count, 0);
  }

  /**
   * One more.
   * @returns to be called when it is over
   * @throws {LockError} `too-many-waiters`
   */
  begin(principal: string): () => void {
    const others = this.#ofPrincipal.get(principal) ?? 0;
    if (others >= this.#max) {
      const message = `"${principal}" has ${others} ${this.#what} by this instance`;
      throw new LockError(message, { code: "too-many-waiters", retryable: true });
    }
    this.#ofPrincipal.set(principal, others + 1);
    return () => {
      const remaining = (this.#ofPrincipal.get(principal) ?? 1) - 1;
      if (remaining === 0) {
        this.#ofPrincipal.delete(principal);
      } else {
        this.#ofPrincipal.set(principal, remaining);
      }
    };
  }
}

/** Who waits by this instance, in the order of arrival. */
export class WaitLimits {
  readonly #ofKey = new Map<string, Set<{ readonly owner: string }>>();
  readonly #bound: PrincipalLimit;

  /** @param maxPerPrincipal how many one principal may have */
  constructor(maxPerPrincipal: number) {
    this.#bound = new PrincipalLimit(maxPerPrincipal, "open waits");
  }

  get count(): number {
    return this.#bound.count;
  }

  /**
   * Somebody waits from now on.
   * @returns to be called when that is over
   * @throws {LockError} `too-many-waiters`
   */
  begin(key: string, owner: string, principal: string): () => void {
    const end = this.#bound.begin(principal);
    const own = { owner };
    const ofKey = this.#ofKey.get(key) ?? new Set();
    this.#ofKey.set(key, ofKey.add(own));
    return () => {
      end();
      if (ofKey.delete(own) && ofKey.size === 0 && this.#ofKey.get(key) === ofKey) {
        this.#ofKey.delete(key);
      }
    };
  }

  /** The names of those who wait by this instance, where the engine knows of the instance only. */
  named(lock: WireLock, instance: string): WireLock {
    const own = this.#ofKey.get(lock.key);
    if (!own) {
      return lock;
    }
    const names = own.values();
    const waiters = lock.waiters.map((waiter) => {
      const owner = waiter.owner === instance ? names.next().value?.owner : undefined;
      return owner === undefined ? waiter : { ...waiter, owner };
    });
    return { ...lock, waiters };
  }
}
