import { checkKey } from "../../option-checks.ts";
import { findLease } from "./find-lease.ts";
import { BaseLock } from "./base-lock.ts";
import type { LockOptions } from "./options.ts";
import { locksOf, type RedisClient } from "./clients.ts";

/**
 * A mutex on the key `mutex:<key>`. It excludes `Mutex` objects of redis-semaphore with the same key, and is excluded by them.
 * All objects of one client share its connections.
 */
export class Mutex extends BaseLock {
  /** @throws {TypeError | RangeError} an argument is invalid */
  constructor(client: RedisClient, key: string, options?: LockOptions) {
    const name = `mutex:${checkKey(key)}`;
    const locks = locksOf(client);
    const mutex = locks.mutex(name);
    const target = {
      kind: "mutex",
      key: name,
      locks,
      maxTtlMs: 86_400_000,
      acquire: mutex.acquire.bind(mutex),
      find: async (identifier: string) => findLease(name, identifier, locks, [client]),
    };
    super(target, options);
  }
}
