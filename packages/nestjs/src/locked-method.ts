import { Inject } from "@nestjs/common";
import type { Lease, Locks } from "holdfast";

import { withLease } from "./inject-lease.ts";
import { parseKey, type LockKey } from "./lock-key.ts";
import { getLocksToken } from "./locks-token.ts";

/** A method that returns a promise, and has at least the parameters of the key. */
// oxlint-disable-next-line typescript/no-explicit-any -- any parameters
export type AsyncMethod<A extends readonly any[], R> = (...args: [...A, ...any[]]) => Promise<R>;

/** A decorator of such methods. */
// oxlint-disable-next-line typescript/no-explicit-any -- any parameters
export type AsyncMethodDecorator<A extends readonly any[], R> = <T extends AsyncMethod<A, R>>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<T>,
) => void;

/** Runs the work of one call under its key. */
type Around = (locks: Locks, key: string, work: (lease: Lease) => Promise<unknown>) => Promise<unknown>;

type Method = (this: object, ...args: unknown[]) => Promise<unknown>;

/** A decorator that replaces a method. The replacement keeps the metadata of decorators below it. */
export function lockedMethod(
  decorator: string,
  key: LockKey,
  options: { readonly name: string | undefined; readonly around: Around },
): (target: object, name: string | symbol, descriptor: { value?: unknown }) => void {
  return (target, name, descriptor) => {
    const label = `${decorator} of ${target.constructor.name}.${String(name)}`;
    const method = descriptor.value as Method;
    if (typeof method !== "function") {
      throw new TypeError(`Expected ${label} to be at a method`);
    }
    const keyOf = parseKey(key, label);
    const locksOf = injectLocks(target, options.name, label);
    const locked: Method = async function (...args) {
      const work = async (lease: Lease): Promise<unknown> =>
        method.apply(this, withLease(args, lease, [target, name]));
      return options.around(locksOf(this), keyOf(this, args), work);
    };
    copyMetadata(method, locked);
    descriptor.value = locked;
  };
}

/** Lets Nest set the `Locks` of the application as a property of each instance. */
function injectLocks(target: object, name: string | undefined, label: string): (instance: object) => Locks {
  const property = getLocksToken(name);
  Inject(property)(target, property);
  return (instance) => {
    const locks = (instance as Record<symbol, Locks | undefined>)[property];
    if (locks === undefined) {
      throw new TypeError(
        `${label} needs an instance that Nest has created, with LocksModule in the application`,
      );
    }
    return locks;
  };
}

/** Other decorators, as @Cron or those of routes, keep metadata at the function. */
function copyMetadata(from: Method, to: Method): void {
  for (const key of Reflect.getOwnMetadataKeys(from)) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, from), to);
  }
  for (const property of ["name", "length"] as const) {
    Object.defineProperty(to, property, { value: from[property], configurable: true });
  }
}
