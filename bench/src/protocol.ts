/** What a worker does when told to start. */
export type Load = CycleLoad | HoldLoad | WaitLoad;

/** Tasks that acquire and release without pause. */
export interface CycleLoad {
  readonly kind: "cycle";
  readonly tasks: number;
  /** `null`: each task has a key of its own. */
  readonly key: string | null;
  readonly ttlMs: number;
  /** How long a task keeps what it was granted; 0 = releases at once. */
  readonly holdMs: number;
}

/** Leases that are acquired evenly over one TTL, then kept. */
export interface HoldLoad {
  readonly kind: "hold";
  /** One lease for each. */
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
  { readonly call: "start"; readonly load: Load } | { readonly call: "begin" | "end" | "stop" };

export type Reply =
  | { readonly outcome: "ready"; readonly settings: string }
  | { readonly outcome: "done" }
  | { readonly outcome: "measured"; readonly measurement: Measurement }
  | { readonly outcome: "failed"; readonly reason: string };

/** What one worker saw between `begin` and `end`. */
export interface Measurement {
  readonly elapsedMs: number;
  readonly cpuMs: number;
  readonly tasks: readonly TaskMeasurement[];
  readonly leasesLost: number;
  readonly failures: number;
  readonly firstFailure: string | null;
}

export interface TaskMeasurement {
  /** One entry per grant: from the call to the grant, even if the call came before `begin`. */
  readonly waitsMs: Float64Array;
  /** How long the task had been waiting at the end without a grant; `null`: it was not waiting. */
  readonly pendingMs: number | null;
}
