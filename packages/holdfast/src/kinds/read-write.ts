import { lockable, type Lockable, type LockRunner } from "./lockable.ts";
import type { WriteLease } from "../lease/lease.ts";
import type { AcquireOptions, ResolvedAcquire } from "../options.ts";
import type { MutexFactory } from "./mutex.ts";

/**
 * Many readers or one writer, in order of arrival: writers are not passed over by readers that come later, and readers that stand
 * together at the head are granted together.
 */
export interface ReadWrite {
  readonly read: Lockable;
  readonly write: Lockable<AcquireOptions, WriteLease>;
}

export function readWrite(
  key: string,
  defaults: ResolvedAcquire,
  mutexes: MutexFactory,
  runner: LockRunner,
): ReadWrite {
  const strategy = (mode: "read" | "write") =>
    mutexes.strategy(key, { ...defaults, lockMode: { kind: "read-write", mode } });
  return { read: lockable(strategy("read"), runner), write: lockable(strategy("write"), runner) };
}
