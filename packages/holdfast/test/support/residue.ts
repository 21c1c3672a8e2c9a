import type { Redis } from "ioredis";

/**
 * Whether a key may remain without holders and waiters: a counter or the audit, which have no TTL, or a key that expires.
 * A key that a late request has removed since it was listed does not remain.
 */
export async function mayRemain(probe: Redis, key: string): Promise<boolean> {
  if (/^holdfast:(fence(:\{[a-z\d]+\})?$|audit:)/.test(key)) {
    return true;
  }
  const isBounded = (await isRetained(probe, key)) && (await probe.pttl(key)) > 0;
  return isBounded || (await probe.exists(key)) === 0;
}

/** The record of a client, a latch, and the record of a break for a holder that the notification did not reach. */
async function isRetained(probe: Redis, key: string): Promise<boolean> {
  if (key.startsWith("holdfast:info:")) {
    return (await probe.hexists(key, "broken")) === 1;
  }
  return key.startsWith("holdfast:")
    ? key.startsWith("holdfast:client:")
    : (await probe.type(key)) === "hash";
}
