/** The load that a worker runs after its start message. */
export type Load = CycleLoad | HoldLoad | RenewLoad | QueueLoad | UseLoad | WaitLoad;

/** Tasks that acquire and release without pause. */
export interface CycleLoad {
  readonly kind: "cycle";
  readonly tasks: number;
  readonly keys: KeyChoice;
  readonly ttlMs: number;
  /** How long a task keeps what it was granted; 0 = releases at once. */
  readonly holdMs: number;
  /** Of the turns of a task one in so many writes, and the others read. Absent: all write. */
  readonly writesOneIn?: number;
  /** Whether to report the intervals of all holds. */
  readonly isWatched?: boolean;
}

/** Which key a task takes next. */
export type KeyChoice =
  /** Its own, always. */
  | { readonly by: "task" }
  /** Another one each time, as where an order or a job names the key. */
  | { readonly by: "acquisition" }
  /** The one of that name. */
  | { readonly by: "name"; readonly name: string }
  /** One of so many by chance, the k-th as often as k to the power of −exponent. */
  | { readonly by: "zipf"; readonly name: string; readonly count: number; readonly exponent: number }
  /** All of the given number of keys in turn, repeatedly. */
  | { readonly by: "turn"; readonly count: number };

/** Leases that are acquired evenly over one TTL, then kept. */
export interface HoldLoad {
  readonly kind: "hold";
  /** One lease for each. */
  readonly keys: readonly string[];
  readonly ttlMs: number;
}

/** Leases that are acquired as fast as may be, and kept: renewed, where the library renews. */
export interface RenewLoad {
  readonly kind: "keep";
  readonly keys: readonly string[];
  readonly ttlMs: number;
}

/** Tasks that wait, each for one of the keys in turn. To stop it is of no use: somebody keeps them. */
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

/** One acquisition, waited for without end. To stop it is to wait until it has been granted. */
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

/** Of a worker, in bytes, when its garbage has been collected. */
export interface Memory {
  /** What is in use: the heap, and buffers beside it. */
  readonly used: number;
  readonly resident: number;
}

/** What one worker saw between `begin` and `end`. */
export interface Measurement {
  readonly elapsedMs: number;
  readonly cpuMs: number;
  readonly tasks: readonly TaskMeasurement[];
  /** Who was inside when, where the load is watched. */
  readonly holds: HoldIntervals;
  readonly leasesLost: number;
  readonly failures: number;
  readonly firstFailure: string | null;
}

/**
 * Turn by turn, from after the grant to before the release: three numbers each, the moment of the entry and of the leaving, in ms of
 * a clock that all processes of the machine share, and the weight, 1 or that of a writer.
 */
export type HoldIntervals = Float64Array;

export interface TaskMeasurement {
  /** One entry per grant: from the call to the grant, even if the call came before `begin`. */
  readonly waitsMs: Float64Array;
  /** How long the task had been waiting at the end without a grant; `null`: it was not waiting. */
  readonly pendingMs: number | null;
}
