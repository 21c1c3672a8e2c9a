import { LockError } from "holdfast";
import type { WireLock } from "holdfast/http";

/** How many of something each principal may have at once. */
export class Bound {
  readonly #ofPrincipal = new Map<string, number>();
  readonly #most: number;
  readonly #what: string;

  /** @param what is bounded, in the plural */
  constructor(most: number, what: string) {
    this.#most = most;
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
    if (others >= this.#most) {
      const message = `"${principal}" has ${others} ${this.#what} by this instance`;
      throw new LockError(message, { code: "too-many-waiters", retryable: true });
    }
    this.#ofPrincipal.set(principal, others + 1);
    return () => {
      const left = (this.#ofPrincipal.get(principal) ?? 1) - 1;
      if (left === 0) {
        this.#ofPrincipal.delete(principal);
      } else {
        this.#ofPrincipal.set(principal, left);
      }
    };
  }
}

/** Who waits by this instance, in the order of arrival. */
export class Waits {
  readonly #ofKey = new Map<string, Set<{ readonly owner: string }>>();
  readonly #bound: Bound;

  /** @param mostOfOne how many one principal may have */
  constructor(mostOfOne: number) {
    this.#bound = new Bound(mostOfOne, "open waits");
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
