import type { Redis } from "ioredis";

/**
 * When the server lets go of a lock if nobody renews it, in our time; not a number if nobody has it. Each contestant keeps
 * a lock in one key whose name ends with that of the lock, and whose expiry is the lease's.
 */
export async function leaseEnd(admin: Redis, lock: string): Promise<number> {
  const [key] = await admin.keys(`*${lock}`);
  const remainingMs = key === undefined ? -1 : await admin.pttl(key);
  return remainingMs < 0 ? Number.NaN : performance.now() + remainingMs;
}
