import { randomUUID } from "node:crypto";

import { startLongUp, type RedisServer } from "@holdfast/test-kit";

import { connect, type Client } from "./clients.ts";
import type { Lease, Locks } from "./library.ts";

// Servers end with the process of the scenario, so no code here stops them.

/** A client for the scenario itself, which no library uses. */
export function direct(server: { readonly port: number }): Client {
  return connect(server.port);
}

/** These nodes report an uptime of one hour, so that a careful library counts their votes. */
export function startNodes(count: number): Promise<RedisServer[]> {
  return Promise.all(Array.from({ length: count }, () => startLongUp()));
}

/** Opens connections and loads scripts, so that the scenario starts in a usual state. */
export async function warmUp(locks: Locks): Promise<void> {
  const key = `warm-up:${randomUUID()}`;
  for (let turn = 0; turn < 3; turn += 1) {
    const lease = await locks.acquire(key, { ttlMs: 10_000, waitMs: 10_000 });
    await lease.release();
  }
}

/** A lease that the library renews, or an unrenewed lease if the library has no renewal. */
export async function holdOrAcquire(
  locks: Locks,
  key: string,
  ttlMs: number,
): Promise<Pick<Lease, "isHeld">> {
  return locks.hold === null ? locks.acquire(key, { ttlMs, waitMs: 5_000 }) : locks.hold(key, ttlMs);
}
