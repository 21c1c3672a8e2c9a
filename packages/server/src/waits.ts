import { LockError } from "holdfast";
import type { WireLock } from "holdfast/http";

/** Limits a number for each principal, such as open streams. */
export class PrincipalLimit {
  readonly #ofPrincipal = new Map<string, number>();
  readonly #max: number;
  readonly #what: string;

  /** @param what the counted things, in the plural, for the error */
  constructor(max: number, what: string) {
    this.#max = max;
    this.#what = what;
  }

  get count(): number {
    return Array.from(this.#ofPrincipal.values()).reduce((sum, count) => sum + count, 0);
  }

  /**
   * Counts one more.
   * @returns ends it; call it once
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

/** The waiters of this instance, in the order of arrival. */
export class WaitLimits {
  readonly #ofKey = new Map<string, Set<{ readonly owner: string }>>();
  readonly #bound: PrincipalLimit;

  /** @param maxPerPrincipal the limit of waits of one principal */
  constructor(maxPerPrincipal: number) {
    this.#bound = new PrincipalLimit(maxPerPrincipal, "open waits");
  }

  get count(): number {
    return this.#bound.count;
  }

  /**
   * Counts one more waiter.
   * @returns ends the wait; call it once
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

  /** Adds the owners of this instance's waiters, because the engine knows only the instance. */
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
