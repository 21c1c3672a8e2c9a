import { lockable, type Lockable, type LockRunner } from "./lockable.ts";
import type { WriteLease } from "../lease/lease.ts";
import type { AcquireOptions, ResolvedAcquire } from "../options.ts";
import type { KeyAcquirer } from "./key-acquirer.ts";

/**
 * A lock for many readers or one writer, in order of arrival. A later reader never overtakes a waiting writer.
 * Adjacent readers at the head of the queue are granted together.
 */
export interface ReadWrite {
  /** Acquires for reading. */
  readonly read: Lockable;
  /** Acquires for writing. */
  readonly write: Lockable<AcquireOptions, WriteLease>;
}

export function readWrite(
  key: string,
  defaults: ResolvedAcquire,
  mutexes: KeyAcquirer,
  runner: LockRunner,
): ReadWrite {
  const strategy = (mode: "read" | "write") =>
    mutexes.strategy(key, { ...defaults, lockMode: { kind: "read-write", mode } });
  return { read: lockable(strategy("read"), runner), write: lockable(strategy("write"), runner) };
}
