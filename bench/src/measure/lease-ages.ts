import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { ContestantName } from "../run/contestant-list.ts";

const everyMs = 20;
const keysAtOnce = 200;

/** The age in ms at which a contestant renews a lease, with the settings of this benchmark. */
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
 * The age of the oldest lease in repeated random samples, since its acquisition or last renewal. The ages follow from the TTLs on
 * the server, so this works for every library. An expired lease counts as old as its TTL.
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

/** Every contestant stores a lock in one Redis key, whose name ends with the name of the lock. */
async function namer(admin: Redis, [first = ""]: readonly string[]): Promise<(key: string) => string> {
  const [name = first] = await admin.keys(`*${first}`);
  const prefix = name.slice(0, name.length - first.length);
  return (key) => prefix + key;
}
