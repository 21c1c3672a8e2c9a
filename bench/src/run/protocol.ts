/** The load that a worker runs after its start message. */
export type Load = CycleLoad | HoldLoad | RenewLoad | QueueLoad | UseLoad | WaitLoad;

/** Tasks that acquire and release without pause. */
export interface CycleLoad {
  readonly kind: "cycle";
  readonly tasks: number;
  readonly keys: KeyChoice;
  readonly ttlMs: number;
  /** How long a task holds each lock; 0: the task releases immediately. */
  readonly holdMs: number;
  /** One in `writesOneIn` turns of a task writes, and the others read. Absent: all turns write. */
  readonly writesOneIn?: number;
  /** Whether to report the intervals of all holds. */
  readonly isWatched?: boolean;
}

/** The key that a task acquires next. */
export type KeyChoice =
  /** The task's own key, always. */
  | { readonly by: "task" }
  /** A new key each time, as when the number of an order or a job names the key. */
  | { readonly by: "acquisition" }
  /** The key with this name. */
  | { readonly by: "name"; readonly name: string }
  /** One of `count` keys at random. The k-th is chosen with a probability proportional to k to the power of −exponent. */
  | { readonly by: "zipf"; readonly name: string; readonly count: number; readonly exponent: number }
  /** All of the given number of keys in turn, repeatedly. */
  | { readonly by: "turn"; readonly count: number };

/** Leases that are acquired evenly over one TTL, then held. */
export interface HoldLoad {
  readonly kind: "hold";
  /** One lease for each key. */
  readonly keys: readonly string[];
  readonly ttlMs: number;
}

/** Leases that are acquired as fast as possible, then held. The library renews them, if it has a renewal. */
export interface RenewLoad {
  readonly kind: "keep";
  readonly keys: readonly string[];
  readonly ttlMs: number;
}

/** Tasks that wait for the keys in turn. They cannot be stopped, because another process holds the keys. */
export interface QueueLoad {
  readonly kind: "queue";
  readonly keys: readonly string[];
  readonly waiters: number;
  readonly ttlMs: number;
}

/** Keys that are acquired and released once; then nothing happens. */
export interface UseLoad {
  readonly kind: "use";
  readonly keys: readonly string[];
  readonly ttlMs: number;
}

/** One acquisition without a limit of the wait. A stop waits for the grant. */
export interface WaitLoad {
  readonly kind: "wait";
  readonly key: string;
  readonly ttlMs: number;
}

export type Request =
  { readonly call: "start"; readonly load: Load } | { readonly call: "begin" | "end" | "stop" | "memory" };

export type Reply =
  | { readonly outcome: "ready"; readonly settings: string }
  | { readonly outcome: "done" }
  | { readonly outcome: "measured"; readonly measurement: Measurement }
  | { readonly outcome: "weighed"; readonly memory: Memory }
  | { readonly outcome: "failed"; readonly reason: string };

/** The memory of a worker in bytes, after garbage collection. */
export interface Memory {
  /** The memory in use: the heap, and buffers outside the heap. */
  readonly used: number;
  readonly resident: number;
}

/** The measurements of one worker from `begin` to `end`. */
export interface Measurement {
  readonly elapsedMs: number;
  readonly cpuMs: number;
  readonly tasks: readonly TaskMeasurement[];
  /** The intervals of all holds; empty if the load is not watched. */
  readonly holds: HoldIntervals;
  readonly leasesLost: number;
  readonly failures: number;
  readonly firstFailure: string | null;
}

/**
 * Three numbers for each hold: its start, its end, and its weight. The interval begins after the grant and ends before the release.
 * Both times are ms on a clock that all processes of the machine share. The weight is 1, or that of a writer.
 */
export type HoldIntervals = Float64Array;

export interface TaskMeasurement {
  /** One entry per grant: from the call to the grant, even if the call came before `begin`. */
  readonly waitsMs: Float64Array;
  /** How long the task had been waiting at the end without a grant; `null`: it was not waiting. */
  readonly pendingMs: number | null;
}
