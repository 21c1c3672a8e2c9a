import type { Locks } from "holdfast";

import type { SeededRandom } from "../plan/chance.ts";
import type { HandedOver } from "./client-protocol.ts";
import type { LatchCaller } from "./latches.ts";
import type { Keys } from "../plan/plan.ts";
import type { Recorder } from "./recorder.ts";
import type { ResourceClient } from "./resource-client.ts";

/** What the callers of one process share. */
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
  /** Absent where the engine has none. */
  latches?: LatchCaller;
  /** Gives it to another process. */
  handOver(handed: HandedOver): void;
}

let names = 0;

/** Of an attempt, or of the owner of a reentrant lock. */
export function uniqueName({ name }: ClientState): string {
  names += 1;
  return `${name}:${names}`;
}
