import type { Redis } from "ioredis";

/**
 * When the server expires a lock that is not renewed, on the clock of this process; NaN if the lock is free. Every contestant
 * stores a lock in one Redis key. The key's name ends with the name of the lock, and the key expires with the lease.
 */
export async function leaseEnd(admin: Redis, lock: string): Promise<number> {
  const [key] = await admin.keys(`*${lock}`);
  const remainingMs = key === undefined ? -1 : await admin.pttl(key);
  return remainingMs < 0 ? Number.NaN : performance.now() + remainingMs;
}
