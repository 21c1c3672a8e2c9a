import type { HeldKind, HeldLease } from "../lock-state.ts";

/** One key that a process holds, as reported by that process. `JSON.stringify` writes the fencing token as text. */
export interface ProcessHold extends Omit<HeldLease, "remainingMs"> {
  /** The time since the last confirmed renewal, or since the grant, ms. Calculated from the validity. */
  readonly renewedMs: number;
  /** The time until the process declares the lease lost without a further renewal, ms. */
  readonly marginMs: number;
}

/** The calls of `acquire` in one process that wait for one key. */
export interface ProcessWait {
  readonly key: string;
  readonly kind: HeldKind;
  readonly count: number;
  /** How long the oldest of these calls has waited, ms. */
  readonly oldestMs: number;
}

/** One `Locks` of a process, as reported by its process. Without an answer only its identity is known. */
export interface ProcessState {
  /** The owner of the `Locks`. A lease may have another owner. */
  readonly owner: string;
  readonly host?: string;
  readonly pid?: number;
  /** The version of this library in the process. */
  readonly version?: string;
  /** The number of the `Locks` in its process. */
  readonly instance?: number;
  /** Whether the process answered within the time. A frozen process does not, and its leases may still be valid. */
  readonly answered: boolean;
  /** The time since the last sign of life, ms: 0 after an answer, otherwise the time since the last registration. */
  readonly seenMs: number;
  /** How late a timer ran that the process set at the question, ms. A large value is a blocked event loop. */
  readonly lagMs?: number;
  /** The first of `holdCount` leases. An answer has a limited size. */
  readonly holds: readonly ProcessHold[];
  readonly holdCount: number;
  /** The longest of `waitCount` waits, by key. */
  readonly waits: readonly ProcessWait[];
  readonly waitCount: number;
}

/** The processes with this library that use one engine. */
export interface ProcessList {
  readonly processes: readonly ProcessState[];
  /** `engine`: all processes with the same engine and prefix. `process`: the engine has no directory, so only this process. */
  readonly scope: "engine" | "process";
  /** Whether every registered process has answered, and all of them were asked. */
  readonly complete: boolean;
  /** Why other processes could not be asked; null: they were. */
  readonly problem: string | null;
  /** The time of the question, milliseconds since 1970, by the clock of this process. */
  readonly asOf: number;
}

/** Options of `LocksAdmin.processes`. */
export interface ProcessesOptions {
  /** Reports only leases and waits for this key. @defaultValue all keys */
  key?: string | undefined;
  /** How long to wait for answers, 10 to 60 000 ms. @defaultValue 500 */
  timeoutMs?: number | undefined;
  /** Ends the wait for answers: the call rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** The bounds of the report of one process. */
export interface ReportQuery {
  /** Undefined: all keys. */
  readonly key: string | undefined;
  /** How long the JSON of all holds and waits may be, in characters. */
  readonly maxLength: number;
}

/** A question to all processes. */
export interface ProcessQuery {
  readonly key: string | undefined;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** The directory of an engine: it finds the other processes, and asks them. */
export interface ProcessDirectory {
  /** Sets the source of this process's own reports. `createLocks` calls it. */
  serve(report: (query: ReportQuery) => ProcessState[]): void;
  /** Rejects with an `EngineError` if the engine is unavailable. A refused command is a `problem`. */
  ask(query: ProcessQuery): Promise<ProcessList>;
}
