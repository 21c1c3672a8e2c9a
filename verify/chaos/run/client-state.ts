import type { Locks } from "holdfast";

import type { Chance } from "../plan/chance.ts";
import type { Handed } from "./client-protocol.ts";
import type { LatchVisitor } from "./latches.ts";
import type { Keys } from "../plan/plan.ts";
import type { Recorder } from "./recorder.ts";
import type { ResourceVisitor } from "./resource-client.ts";

/** What the callers of one process share. */
export interface Office {
  readonly name: string;
  readonly index: number;
  readonly locks: Locks;
  readonly recorder: Recorder;
  readonly resource: ResourceVisitor;
  readonly chance: Chance;
  readonly keys: Keys;
  readonly shortestTtlMs: number;
  readonly maxTtlMs: number;
  /** Absent where the engine has none. */
  latches?: LatchVisitor;
  /** Gives it to another process. */
  hand(handed: Handed): void;
}

let names = 0;

/** Of an attempt, or of the owner of a reentrant lock. */
export function freshName({ name }: Office): string {
  names += 1;
  return `${name}:${names}`;
}
