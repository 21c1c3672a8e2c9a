import { LockError } from "../errors.ts";
import type { InternalLease } from "../lease/lease.ts";
import { asyncStorage } from "../runtime/async-storage.ts";

interface Scope {
  /** The instance that entered this scope. */
  readonly owner: LockScope;
  readonly lease: InternalLease;
  readonly outer: Scope | undefined;
}

/** One storage for all instances, because Node 20 calls every storage ever used at each promise. */
const storage = asyncStorage<Scope>();

/** Records the `withLock` calls around a call, so that a self-deadlock is rejected at once. */
export class LockScope {
  run<T>(lease: InternalLease, work: () => T): T {
    return storage.run({ owner: this, lease, outer: storage.getStore() }, work);
  }

  /** The lease of the innermost `withLock` around this call that matches. */
  find(matches: (lease: InternalLease) => boolean): InternalLease | undefined {
    for (let scope = storage.getStore(); scope; scope = scope.outer) {
      if (scope.owner === this && matches(scope.lease)) {
        return scope.lease;
      }
    }
    return undefined;
  }

  /** @throws {LockError} `self-deadlock` inside a `withLock` that still holds the key */
  assertNotWithin(key: string): void {
    if (this.find((lease) => lease.keys.includes(key) && lease.isInForce)) {
      const message = `"${key}" is held by the \`withLock\` around this call, so this call would wait for itself`;
      throw new LockError(message, { code: "self-deadlock", key });
    }
  }
}
