/**
 * The bytes that one lease, one waiter and one queue take on a server (Redis 7.0, 64 bits). The key has about 20 characters, and
 * the caller sets no owner, reason or labels. The suites `memory` and `capacity` measure these numbers.
 */
export const bytesOf = { lease: 220, waiter: 210, queue: 940 } as const;

/** A driver opens two connections to each node: one for commands, one for notifications. */
export function connections({ processes, nodes }: { processes: number; nodes: number }): number {
  return processes * nodes * 2;
}

/** The number of each; absent: 0. */
type Counts = Readonly<Partial<Record<keyof typeof bytesOf, number>>>;

/**
 * The bytes that locks take in Redis, in addition to its own few MB. Each node of a quorum needs the same. A queue is a key with
 * waiters.
 */
export function redisBytes({ lease = 0, waiter = 0, queue = 0 }: Counts): number {
  return lease * bytesOf.lease + waiter * bytesOf.waiter + queue * bytesOf.queue;
}

/** A pair takes two round trips: one to acquire, and one to release. */
export function pairsPerSecond({ tasks, roundTripMs }: { tasks: number; roundTripMs: number }): number {
  return (tasks * 1_000) / (2 * roundTripMs);
}

/** A change of the holder's process takes one round trip: half of one to the server, and half of one to the next holder. */
export function turnsPerSecond({ holdMs, roundTripMs }: { holdMs: number; roundTripMs: number }): number {
  return 1_000 / (holdMs + roundTripMs);
}

/** Each lease is renewed after a third of its TTL. */
export function renewalsPerSecond({ leases, ttlMs }: { leases: number; ttlMs: number }): number {
  return leases / (ttlMs / 3_000);
}

/** The cores that the commands need. Each server uses one thread for commands. */
export function serverCores(load: { perSecond: number; cpuMicros: number }): number {
  return (load.perSecond * load.cpuMicros) / 1e6;
}

/** The number of shards, so that none is busier than `busyAtMost`. */
export function shards({ cores, busyAtMost }: { cores: number; busyAtMost: number }): number {
  return Math.ceil(cores / busyAtMost);
}
