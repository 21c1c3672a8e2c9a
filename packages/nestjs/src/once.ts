import { oncePerFire, type OncePerFireOptions } from "holdfast/cron";

import type { LockKey } from "./lock-key.ts";
import { lockedMethod, type AsyncMethodDecorator } from "./locked-method.ts";

/** Options of `@Once`: those of `oncePerFire` of `holdfast/cron`. */
export interface OnceMethodOptions extends OncePerFireOptions {
  /** The name of the `LocksModule`. @defaultValue none: the default `Locks` */
  name?: string | undefined;
}

/**
 * Runs an async method once for each fire of a schedule in all processes, by `oncePerFire` of `holdfast/cron`. It stands above or below
 * `@Cron`, `@Interval` or `@Timeout` of @nestjs/schedule, which log the error of a call without `onError`. A parameter with
 * `@InjectLease()` receives the lease. A call that is skipped resolves, so the method returns no value.
 * @param key a key, a template such as `report:{0}`, or a function of the arguments
 * @throws {TypeError} invalid template, when the class is defined
 */
// oxlint-disable-next-line typescript/no-explicit-any -- any parameters
export function Once<A extends readonly any[] = []>(
  key: LockKey<A>,
  { name, ...options }: OnceMethodOptions,
): AsyncMethodDecorator<A, void> {
  return lockedMethod("@Once", key as LockKey, {
    name,
    around: (locks, resolvedKey, work) => oncePerFire(locks, resolvedKey, options, work)(),
  });
}
