import type { FaultKind } from "./fault-kinds.ts";

export const engineNames = [
  "redis",
  "redlock",
  "sentinel",
  "cluster",
  "postgres",
  "mysql",
  "etcd",
  "etcd-cluster",
  "zookeeper",
  "zookeeper-ensemble",
] as const;
/** The engines of a run that names none. */
export const usualEngines: readonly EngineName[] = ["redis", "redlock"];
export type EngineName = (typeof engineNames)[number];

/** The rules that can be left out, to show that a run detects their absence. */
export const omissions = ["guard", "durability"] as const;
export type Omission = (typeof omissions)[number];

/** All decisions that precede a run. Equal seeds give equal plans, but the course of the run depends on the machine. */
export interface Plan {
  readonly seed: number;
  readonly engine: EngineName;
  readonly without: Omission | null;
  readonly minutes: number;
  readonly nodes: readonly NodeSetup[];
  readonly clients: readonly ClientSetup[];
  readonly keys: Keys;
  /** The largest TTL of the run, in ms. */
  readonly maxTtlMs: number;
  /** The largest difference between the fencing tokens of one grant, which its process hands over in memory. */
  readonly tokenSpread: number;
  readonly bounds: Bounds;
  readonly storms: readonly Storm[];
}

export interface NodeSetup {
  /** Whether every write is on disk before the server replies, from its first start on. Without durability a restart loses data. */
  readonly durable: boolean;
  /** The server is not durable only because it forces no write to disk during a rewrite of its file. It is always killed during one. */
  readonly losesRewrites?: true;
}

export interface ClientSetup {
  readonly handover: boolean;
  readonly callers: number;
  /** Some clients are never killed, so that the run shows whether their memory grows. */
  readonly mayBeKilled: boolean;
}

export interface Keys {
  readonly hot: string;
  readonly lukewarm: readonly string[];
  /** One key for each client. */
  readonly own: readonly string[];
  /** The read-write locks, if the engine has them. */
  readonly readWrite: readonly string[];
  /** The semaphores, if the engine has them. */
  readonly semaphores: readonly { readonly key: string; readonly limit: number }[];
  /** Keys that callers acquire several at once, in any order, and sometimes one alone. */
  readonly sets: readonly string[];
  readonly reentrant: readonly string[];
  readonly elections: readonly string[];
  /** The latches. null: the engine has none. */
  readonly latches: LatchKeys | null;
}

/** Keys that all clients use one after another, each for less than its TTL, and one key with many brief latches. */
export interface LatchKeys {
  readonly everyMs: number;
  readonly count: number;
  readonly ttlMs: number;
  readonly briefCount: number;
  readonly briefTtlMs: number;
}

/** Bounds on times, in ms. They are generous, because many processes share few cores. Safety has no such bounds. */
export interface Bounds {
  /** A request or a release is settled within this time after its deadline, without the stalls of its process. */
  readonly settleMs: number;
  /** In a quiet period every process gets every lock within this time. */
  readonly quietPeriodMs: number;
  /** The servers have no residue this long after all processes came to rest. */
  readonly residueMs: number;
  /** The allowed growth of memory: the mean of the last third of the samples may exceed the first by this factor and these bytes. */
  readonly memoryFactor: number;
  readonly memoryBytes: number;
}

export interface Storm {
  readonly forMs: number;
  readonly faults: readonly Fault[];
}

export interface Fault {
  /** Unique within a run. */
  readonly faultId: number;
  readonly kind: FaultKind;
  /** Time after the start of the storm, in ms. */
  readonly at: number;
  /** 0: the fault is momentary. */
  readonly forMs: number;
  readonly client: number | null;
  readonly nodes: readonly number[];
  /** The size of a delay or a step, in ms, for kinds with a size. */
  readonly size: number;
}
