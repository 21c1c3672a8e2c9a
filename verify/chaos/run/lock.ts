import type { Lease, Lockable, Locks } from "holdfast";

/**
 * As what a lock is asked for. `mutex`: the plain one, of which most of a run is; `read`, `write`: of a read-write lock; `all`:
 * several keys under one lease. A new kind of lock joins here, among the keys of the plan, and in what a caller does with it. Latches are no locks: see latches.ts.
 */
export const lockKinds = ["mutex", "read", "write", "semaphore", "all", "reentrant", "election"] as const;
export type LockKind = (typeof lockKinds)[number];

/** What is asked for, so that another process can ask for the same. */
export interface Lock {
  readonly lockKind: LockKind;
  /** Of several keys: any of them. */
  readonly key: string;
  /** Of several, in the order in which they are named. */
  readonly keys?: readonly string[];
  /** Of a semaphore. */
  readonly permits?: number;
  readonly limit?: number;
}

interface Options {
  readonly ttlMs: number;
  readonly renew?: boolean;
  readonly signal?: AbortSignal;
  readonly attemptId?: string;
}

export function acquire(locks: Locks, lock: Lock, options: Options & { waitMs: number }): Promise<Lease> {
  return lock.lockKind === "election"
    ? locks.election(lock.key).campaign(options)
    : lockable(locks, lock).acquire(withPermits(lock, options));
}

/** Not of an election: who stands for it waits. */
export function tryAcquire(locks: Locks, lock: Lock, options: Options): Promise<Lease | null> {
  return lockable(locks, lock).tryAcquire(withPermits(lock, options));
}

/** Not of an election: its term is no call. */
export function withLock<T>(
  locks: Locks,
  lock: Lock,
  options: Options & { waitMs: number },
  work: (lease: Lease) => Promise<T>,
): Promise<T> {
  return lockable(locks, lock).withLock(withPermits(lock, options), work);
}

function lockable(locks: Locks, { lockKind, key, keys = [], limit = 1 }: Lock): Lockable {
  switch (lockKind) {
    case "mutex":
    case "election":
      return locks.mutex(key);
    case "read":
      return locks.readWrite(key).read;
    case "write":
      return locks.readWrite(key).write as Lockable;
    case "semaphore":
      return locks.semaphore(key, { limit });
    case "all":
      return locks.all(keys);
    case "reentrant":
      return locks.reentrant(key);
  }
}

function withPermits<O extends Options>({ permits }: Lock, options: O): O {
  return permits === undefined ? options : { ...options, permits };
}
