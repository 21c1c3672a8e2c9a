import { AsyncLocalStorage } from "node:async_hooks";

import { LockError } from "../errors.ts";
import type { InternalLease } from "../lease/lease.ts";

interface Scope {
  /** Whose it is. */
  readonly owner: LockScope;
  readonly lease: InternalLease;
  readonly outer: Scope | undefined;
}

/** One for all: Node 20 asks each storage that was ever used at every promise, for as long as the process lives. */
const storage = new AsyncLocalStorage<Scope>();

/** Knows inside which `withLock` a call is made, so that a wait for oneself is refused at once. */
export class LockScope {
  run<T>(lease: InternalLease, work: () => T): T {
    return storage.run({ owner: this, lease, outer: storage.getStore() }, work);
  }

  /** The lease of the innermost `withLock` around this call that is such a one. */
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
      const message = `"${key}" is held by the \`withLock\` around this call, which would wait for itself`;
      throw new LockError(message, { code: "self-deadlock", key });
    }
  }
}
