import type { Lease, Lockable, Locks } from "holdfast";

/**
 * The mode in which a task acquires a lock. `mutex` is the plain lock, which most tasks use. `read` and `write` use a read-write lock, and
 * `all` several keys under one lease. For a new kind of lock extend this list, the keys of the plan, and the caller. Latches are not locks,
 * see latches.ts.
 */
export const lockKinds = ["mutex", "read", "write", "semaphore", "all", "reentrant", "election"] as const;
export type LockKind = (typeof lockKinds)[number];

/** A lock to acquire, in a form that another process can acquire too. */
export interface Lock {
  readonly lockKind: LockKind;
  /** One of the keys, if there are several. */
  readonly key: string;
  /** All keys, in the order in which the request names them. */
  readonly keys?: readonly string[];
  /** The permits of a semaphore. */
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

/** Not for an election, because a candidate waits. */
export function tryAcquire(locks: Locks, lock: Lock, options: Options): Promise<Lease | null> {
  return lockable(locks, lock).tryAcquire(withPermits(lock, options));
}

/** Not for an election, because its term is not a call. */
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
