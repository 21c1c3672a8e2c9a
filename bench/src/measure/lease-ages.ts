import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { Entrant } from "../run/contestant-list.ts";

const everyMs = 20;
const keysAtOnce = 200;

/** After how much of a lease its library renews it, by the settings that it is measured with; ms. */
export function renewalAgeMs(entrant: Entrant, ttlMs: number): number {
  return beforeTheEnd.includes(entrant) ? ttlMs - 500 : ttlMs * (shareOfTtl[entrant] ?? 1 / 3);
}

const beforeTheEnd: readonly Entrant[] = ["redlock", "@sesamecare-oss/redlock"];
const shareOfTtl: Readonly<Partial<Record<Entrant, number>>> = {
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
    const look = admin.pipeline();
    for (let one = 0; one < keysAtOnce; one += 1) {
      look.pttl(nameOf(keys[Math.floor(Math.random() * keys.length)] ?? ""));
    }
    for (const [, left] of (await look.exec()) ?? []) {
      oldestMs = Math.max(oldestMs, ttlMs - Math.max(0, Number(left)));
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
