import type { Redis } from "ioredis";

/** Whether a key may stay where nobody holds or waits: a counter, which has no TTL; and what expires. */
export async function mayRemain(probe: Redis, key: string): Promise<boolean> {
  if (/^holdfast:fence(:\{[a-z\d]+\})?$/.test(key)) {
    return true;
  }
  return (await isRetained(probe, key)) && (await probe.pttl(key)) > 0;
}

/** The description of a client, a latch, and what a break leaves beside a lock for a holder that its message did not reach. */
async function isRetained(probe: Redis, key: string): Promise<boolean> {
  if (key.startsWith("holdfast:info:")) {
    return (await probe.hexists(key, "broken")) === 1;
  }
  return key.startsWith("holdfast:")
    ? key.startsWith("holdfast:client:")
    : (await probe.type(key)) === "hash";
}
