import type { AcquireOptions } from "holdfast";

import type { LockKey } from "./lock-key.ts";
import { lockedMethod, type AsyncMethodDecorator } from "./locked-method.ts";

/** Options of `@WithLock`: those of `Locks.withLock`. */
export interface WithLockOptions extends AcquireOptions {
  /** The name of the `LocksModule`. @defaultValue none: the default `Locks` */
  name?: string | undefined;
}

/**
 * Runs each call of an async method under a lock, by `Locks.withLock`. The call rejects with the error of the method. It rejects with a
 * `WaitTimeoutError` if the lock stays held for `waitMs`, and with a `LeaseLostError` if the lease is lost before the method ends. A
 * parameter with `@InjectLease()` receives the lease.
 *
 * The class must be a provider or a controller. Decorators of the same method may stand above and below.
 * @param key a template such as `order:{0.id}`, or a function of the arguments
 * @throws {TypeError} invalid template, when the class is defined; a call rejects with it if a part of its key is undefined or empty
 */
// oxlint-disable-next-line typescript/no-explicit-any -- any parameters
export function WithLock<A extends readonly any[] = []>(
  key: LockKey<A>,
  { name, ...options }: WithLockOptions = {},
): AsyncMethodDecorator<A, unknown> {
  return lockedMethod("@WithLock", key as LockKey, {
    name,
    around: (locks, resolvedKey, work) => locks.withLock(resolvedKey, options, work),
  });
}
