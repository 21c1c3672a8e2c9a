import type { Locks } from "holdfast";

import type { SeededRandom } from "../plan/chance.ts";
import type { HandedOver } from "./client-protocol.ts";
import type { Keys } from "../plan/plan.ts";
import type { Recorder } from "./recorder.ts";
import type { ResourceClient } from "./resource-client.ts";

/** Calls the latches that all processes share. */
export interface LatchUser {
  /** Counts a latch down, or waits until the latch opens. */
  useLatch(): Promise<void>;
  /** All processes count with the same names. The latch must open, and every waiter must return. */
  runQuietPeriodLatch(round: number, waitMs: number): Promise<void>;
}

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
  latches?: LatchUser;
  /** Sends a lease or an attempt to another process. */
  handOver(handed: HandedOver): void;
}

let names = 0;

/** A unique name for an attempt, or for the owner of a reentrant lock. */
export function uniqueName({ name }: ClientState): string {
  names += 1;
  return `${name}:${names}`;
}
