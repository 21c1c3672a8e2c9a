import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { ContestantName } from "../run/contestant-list.ts";

const everyMs = 20;
const keysAtOnce = 200;

/** After how much of a lease its library renews it, by the settings that it is measured with; ms. */
export function renewalAgeMs(contestant: ContestantName, ttlMs: number): number {
  return lastRenewalMarginMs.includes(contestant)
    ? ttlMs - 500
    : ttlMs * (renewalFraction[contestant] ?? 1 / 3);
}

const lastRenewalMarginMs: readonly ContestantName[] = ["redlock", "@sesamecare-oss/redlock"];
const renewalFraction: Readonly<Partial<Record<ContestantName, number>>> = {
  "redis-semaphore": 0.8,
  "redlock-universal": 0.8,
};

/**
 * How old the oldest of many leases was that was seen, since its acquisition or last renewal: some by chance, again and again. The
 * server knows by their TTL, whatever the library is. One that is gone was as old as its TTL.
 */
export async function oldestLeaseMs(
  admin: Redis,
  { keys, ttlMs, watchedMs }: { keys: readonly string[]; ttlMs: number; watchedMs: number },
): Promise<number> {
  const nameOf = await namer(admin, keys);
  const end = performance.now() + watchedMs;
  let oldestMs = 0;
  while (performance.now() < end) {
    const sample = admin.pipeline();
    for (let one = 0; one < keysAtOnce; one += 1) {
      sample.pttl(nameOf(keys[Math.floor(Math.random() * keys.length)] ?? ""));
    }
    for (const [, remaining] of (await sample.exec()) ?? []) {
      oldestMs = Math.max(oldestMs, ttlMs - Math.max(0, Number(remaining)));
    }
    await sleep(everyMs);
  }
  return oldestMs;
}

/** Each contestant keeps a lock in one key, whose name ends with that of the lock. */
async function namer(admin: Redis, [first = ""]: readonly string[]): Promise<(key: string) => string> {
  const [name = first] = await admin.keys(`*${first}`);
  const prefix = name.slice(0, name.length - first.length);
  return (key) => prefix + key;
}
