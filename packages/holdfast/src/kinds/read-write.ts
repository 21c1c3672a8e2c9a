import { lockable, type Lockable, type Runner } from "./lockable.ts";
import type { WriteLease } from "../lease/lease.ts";
import type { AcquireOptions, ResolvedAcquire } from "../options.ts";
import type { Mutexes } from "./mutex.ts";

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
  mutexes: Mutexes,
  runner: Runner,
): ReadWrite {
  const way = (mode: "read" | "write") =>
    mutexes.way(key, { ...defaults, share: { kind: "read-write", mode } });
  return { read: lockable(way("read"), runner), write: lockable(way("write"), runner) };
}
