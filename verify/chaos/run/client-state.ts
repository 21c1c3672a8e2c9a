import type { Locks } from "holdfast";

import type { SeededRandom } from "../plan/chance.ts";
import type { HandedOver } from "./client-protocol.ts";
import type { LatchCaller } from "./latches.ts";
import type { Keys } from "../plan/plan.ts";
import type { Recorder } from "./recorder.ts";
import type { ResourceClient } from "./resource-client.ts";

/** The state that the callers of one process share. */
export interface ClientState {
  readonly name: string;
  readonly index: number;
  readonly locks: Locks;
  readonly recorder: Recorder;
  readonly resource: ResourceClient;
  readonly random: SeededRandom;
  readonly keys: Keys;
  readonly shortestTtlMs: number;
  readonly maxTtlMs: number;
  /** Absent if the engine has no latches. */
  latches?: LatchCaller;
  /** Sends a lease or an attempt to another process. */
  handOver(handed: HandedOver): void;
}

let names = 0;

/** A unique name for an attempt, or for the owner of a reentrant lock. */
export function uniqueName({ name }: ClientState): string {
  names += 1;
  return `${name}:${names}`;
}
