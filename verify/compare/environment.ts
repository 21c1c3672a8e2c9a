import { randomUUID } from "node:crypto";

import { startRedis, type RedisServer } from "@holdfast/test-kit";

import { connect, type Client } from "./clients.ts";
import type { Lease, Locks } from "./library.ts";

// Servers end with the process of the scenario: none of them is stopped here.

/** A client that looks and meddles, and is no library's. */
export function direct(server: { readonly port: number }): Client {
  return connect(server.port);
}

/** Such nodes have every write on their disk, so that a careful library lets them vote from their start. */
export function startNodes(count: number): Promise<RedisServer[]> {
  const args = ["--appendonly", "yes", "--appendfsync", "always"];
  return Promise.all(Array.from({ length: count }, () => startRedis({ args })));
}

/** Connections are there and scripts are loaded: how it is after a while. */
export async function warmUp(locks: Locks): Promise<void> {
  const key = `warm-up:${randomUUID()}`;
  for (let turn = 0; turn < 3; turn += 1) {
    const lease = await locks.acquire(key, { ttlMs: 10_000, waitMs: 10_000 });
    await lease.release();
  }
}

/** A lease that the library keeps alive, or where it keeps none one that it does not. */
export async function holdOrAcquire(
  locks: Locks,
  key: string,
  ttlMs: number,
): Promise<Pick<Lease, "isHeld">> {
  return locks.hold === null ? locks.acquire(key, { ttlMs, waitMs: 5_000 }) : locks.hold(key, ttlMs);
}
