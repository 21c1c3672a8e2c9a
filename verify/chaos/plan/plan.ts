import type { FaultKind } from "./fault-kinds.ts";

export const engineNames = ["redis", "redlock", "sentinel", "cluster"] as const;
/** Those of a run that names none. */
export const usualEngines: readonly EngineName[] = ["redis", "redlock"];
export type EngineName = (typeof engineNames)[number];

/** A rule that is left out, so that a run can be seen to find something. */
export const omissions = ["guard", "durability"] as const;
export type Omission = (typeof omissions)[number];

/** Everything that is decided before a run begins. The same seed gives the same plan; how it goes is up to the machine. */
export interface Plan {
  readonly seed: number;
  readonly engine: EngineName;
  readonly without: Omission | null;
  readonly minutes: number;
  readonly nodes: readonly NodeSetup[];
  readonly clients: readonly ClientSetup[];
  readonly keys: Keys;
  /** The largest TTL that is used, ms. */
  readonly maxTtlMs: number;
  readonly bounds: Bounds;
  readonly storms: readonly Storm[];
}

export interface NodeSetup {
  /** Every write is on its disk before it answers; else it forgets all when it is restarted. */
  readonly durable: boolean;
}

export interface ClientSetup {
  readonly handover: boolean;
  readonly callers: number;
  /** Some are never killed, so that it can be seen whether their memory grows. */
  readonly mayBeKilled: boolean;
}

export interface Keys {
  readonly hot: string;
  readonly lukewarm: readonly string[];
  /** One for each client. */
  readonly own: readonly string[];
  readonly readWrite: readonly string[];
  /** None where the engine has none. */
  readonly semaphores: readonly { readonly key: string; readonly limit: number }[];
  /** Of which several are asked for at once, in any order, and now and then one alone. */
  readonly sets: readonly string[];
  readonly reentrant: readonly string[];
  readonly elections: readonly string[];
  /** null where the engine has none. */
  readonly latches: LatchKeys | null;
}

/** All use one key after the other, each for a while that is shorter than its TTL; and one key that has many brief latches. */
export interface LatchKeys {
  readonly everyMs: number;
  readonly count: number;
  readonly ttlMs: number;
  readonly briefCount: number;
  readonly briefTtlMs: number;
}

/** What is promised of times, ms. Generous, as many processes share few cores; safety has no such bounds. */
export interface Bounds {
  /** An ask or a release is settled so long after it had to be, without the times when its process could not run. */
  readonly settleMs: number;
  /** In peace everybody gets every lock within this. */
  readonly quietPeriodMs: number;
  /** Nothing is left this long after all came to rest. */
  readonly residueMs: number;
  /** The mean of the last third of the memory samples may be larger than that of the first by a factor and so many bytes. */
  readonly memoryFactor: number;
  readonly memoryBytes: number;
}

export interface Storm {
  readonly forMs: number;
  readonly faults: readonly Fault[];
}

export interface Fault {
  /** Unique in a run. */
  readonly faultId: number;
  readonly kind: FaultKind;
  /** After the beginning of the storm, ms. */
  readonly at: number;
  /** 0: it is momentary. */
  readonly forMs: number;
  readonly client: number | null;
  readonly nodes: readonly number[];
  /** Of those that have one: ms of a delay or a step. */
  readonly size: number;
}
