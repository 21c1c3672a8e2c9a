/**
 * What one of each takes on a server, in bytes, with a key of about 20 characters and no owner, reason or labels of its own: Redis
 * 7.0 on 64 bits. The suites `memory` and `capacity` measure them.
 */
export const bytesOf = { lease: 220, waiter: 210, queue: 940 } as const;

/** Of a driver one connection for commands and one for messages, to each node. */
export function connections({ processes, nodes }: { processes: number; nodes: number }): number {
  return processes * nodes * 2;
}

/** How many there are of each; none where it is not said. */
type Counts = Readonly<Partial<Record<keyof typeof bytesOf, number>>>;

/** What Redis keeps, beside its own few MB: the same on each node of a quorum. A queue is a key that somebody waits for. */
export function redisBytes({ lease = 0, waiter = 0, queue = 0 }: Counts): number {
  return lease * bytesOf.lease + waiter * bytesOf.waiter + queue * bytesOf.queue;
}

/** Acquire and release are a round trip each. */
export function pairsPerSecond({ tasks, roundTripMs }: { tasks: number; roundTripMs: number }): number {
  return (tasks * 1_000) / (2 * roundTripMs);
}

/** From process to process: half a round trip to the server, and half one to the next holder. */
export function turnsPerSecond({ holdMs, roundTripMs }: { holdMs: number; roundTripMs: number }): number {
  return 1_000 / (holdMs + roundTripMs);
}

/** Each lease at a third of its TTL. */
export function renewalsPerSecond({ leases, ttlMs }: { leases: number; ttlMs: number }): number {
  return leases / (ttlMs / 3_000);
}

/** Of the one thread of each server. */
export function serverCores(load: { perSecond: number; cpuMicros: number }): number {
  return (load.perSecond * load.cpuMicros) / 1e6;
}

/** None of them busier than it may be. */
export function shards({ cores, busyAtMost }: { cores: number; busyAtMost: number }): number {
  return Math.ceil(cores / busyAtMost);
}
