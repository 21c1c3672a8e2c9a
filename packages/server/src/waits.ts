import { LockError } from "holdfast";
import type { WireLock } from "holdfast/http";

/** Limits a number for each principal, such as open streams. */
export class PrincipalLimit {
  readonly #counts = new Map<string, number>();
  readonly #max: number;
  readonly #what: string;

  /** @param what the counted things, in the plural, for the error */
  constructor(max: number, what: string) {
    this.#max = max;
    this.#what = what;
  }

  get count(): number {
    return Array.from(this.#counts.values()).reduce((sum, count) => sum + count, 0);
  }

  /**
   * Checks that there is room for one more.
   * @param key counts for this key alone
   * @throws {LockError} `too-many-waiters`
   */
  check(quota: string, key?: string): void {
    const present = this.#counts.get(nameOf(quota, key)) ?? 0;
    if (present >= this.#max) {
      const ofKey = key === undefined ? "" : ` for "${key}"`;
      const message = `"${quota}" has ${present} ${this.#what}${ofKey} by this instance, and the limit is ${this.#max}`;
      throw new LockError(message, { code: "too-many-waiters", retryable: true, key });
    }
  }

  /**
   * Counts one more, like {@link check}.
   * @returns ends it; call it once
   */
  begin(quota: string, key?: string): () => void {
    this.check(quota, key);
    const name = nameOf(quota, key);
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    return () => {
      const remaining = (this.#counts.get(name) ?? 1) - 1;
      if (remaining === 0) {
        this.#counts.delete(name);
      } else {
        this.#counts.set(name, remaining);
      }
    };
  }
}

function nameOf(quota: string, key = ""): string {
  return `${quota.length} ${quota}${key}`;
}

/** The waiters of this instance, in the order of arrival. */
export class WaitLimits {
  readonly #ofKey = new Map<string, Set<{ readonly owner: string }>>();
  readonly #bound: PrincipalLimit;
  readonly #boundOfKey: PrincipalLimit;

  /**
   * @param max the limit of waits of one principal
   * @param maxOfKey the limit of waits of one principal for one key
   */
  constructor(max: number, maxOfKey: number) {
    this.#bound = new PrincipalLimit(max, "open waits");
    this.#boundOfKey = new PrincipalLimit(maxOfKey, "open waits");
  }

  get open(): number {
    return this.#bound.count;
  }

  /**
   * Counts one more waiter.
   * @returns ends the wait; call it once
   * @throws {LockError} `too-many-waiters`
   */
  begin(key: string, owner: string, quota: string): () => void {
    const end = this.count(key, quota);
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

  /** Counts one more wait, like {@link begin}, without a place of its own in the queue of the engine. */
  count(key: string, quota: string): () => void {
    this.#boundOfKey.check(quota, key);
    const ends = [this.#bound.begin(quota), this.#boundOfKey.begin(quota, key)];
    return () => ends.forEach((end) => end());
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
