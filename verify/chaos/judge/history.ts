import { openSync, writeSync } from "node:fs";

import type { FaultKind } from "../plan/fault-kinds.ts";
import type { LockKind } from "../run/lock.ts";

/** Milliseconds since the run's epoch on the monotonic clock that all processes of the machine share. */
export type Instant = number;

/**
 * How a lease was asked for. `attempt`: with an id of its own, and so also its repeats; `probe`: in peace, where it has to come;
 * `adopt`: it was another's, by a transfer; `downgrade`: a reader's, that a writer of this process became; `nested`: by who holds
 * it already.
 */
export type RequestKind = "acquire" | "try" | "work" | "attempt" | "adopt" | "probe" | "downgrade" | "nested";

/** What is asked for, and how. */
export interface LeaseRequest {
  /** Of several keys: any of them. */
  readonly key: string;
  readonly kind: RequestKind;
  readonly waitMs: number;
  /** Of a named attempt. */
  readonly attemptId?: string;
  /** Absent: as a mutex. */
  readonly lockKind?: LockKind;
  /** Of a semaphore. */
  readonly permits?: number;
  /** Of several keys. */
  readonly keys?: readonly string[];
  /** Of a reentrant lock: the leases of one owner have the same. */
  readonly reentrantHold?: string;
}

/** What is asked of a latch: to count it down as this attempt, or, where there is none, to wait for it. */
export interface LatchRequest {
  readonly key: string;
  /** Of the process: calls of one `Latch` have the same. */
  readonly handle: number;
  readonly count: number;
  readonly ttlMs: number;
  readonly attemptId?: string;
  readonly waitMs: number;
  /** In peace, where it has to open. */
  readonly isProbe: boolean;
}

/** Votes that were counted for a lock. */
export interface VoteCount {
  readonly key: string;
  readonly votes: readonly CountedVote[];
}

export interface CountedVote {
  /** Which of the servers. */
  readonly node: number;
  /** The beginning of the id of the server's run that gave it: see {@link shortRunId}. */
  readonly run: string;
  readonly via: "reply" | "notification";
  /** For how long it was valid still, ms. */
  readonly remainingMs: number;
}

/** Enough of a run id to tell the runs of a history from each other. */
export function shortRunId(runId: string): string {
  return runId.slice(0, 8);
}

/** What a client process tells of itself and its leases. A lease has the number of the ask that it came from. */
export type ClientRecord =
  | { readonly e: "opened"; readonly at: Instant; readonly pid: number; readonly handover: boolean }
  | (LeaseRequest & { readonly e: "requested"; readonly at: Instant; readonly requestId: number })
  | {
      readonly e: "granted";
      readonly at: Instant;
      readonly requestId: number;
      readonly token: string;
      readonly validUntil: Instant;
      /** Of several keys: that of each. */
      readonly tokens?: Readonly<Record<string, string>>;
    }
  | { readonly e: "refused"; readonly at: Instant; readonly requestId: number; readonly code: string }
  /** Its validity ends then, as the lease says; told where it moved. */
  | { readonly e: "valid"; readonly at: Instant; readonly requestId: number; readonly validUntil: Instant }
  /** The resource was visited with it: what it answered. */
  | { readonly e: "used"; readonly at: Instant; readonly requestId: number; readonly accepted: boolean }
  | { readonly e: "lost"; readonly at: Instant; readonly requestId: number; readonly reason: string }
  /** A timer of ours found that the validity had ended 50 ms before and nobody had told it. */
  | {
      readonly e: "unreported";
      readonly at: Instant;
      readonly requestId: number;
      readonly validUntil: Instant;
    }
  | {
      readonly e: "releasing";
      readonly at: Instant;
      readonly requestId: number;
      readonly validUntil: Instant;
    }
  | { readonly e: "released"; readonly at: Instant; readonly requestId: number; readonly answer: string }
  | { readonly e: "transferred"; readonly at: Instant; readonly requestId: number }
  /** A writer is about to become a reader, which is asked for next. */
  | { readonly e: "downgraded"; readonly at: Instant; readonly requestId: number }
  | (LatchRequest & { readonly e: "latch"; readonly at: Instant; readonly call: number })
  /** It is counted, or let go: what is left. */
  | { readonly e: "latch-reply"; readonly at: Instant; readonly call: number; readonly remaining: number }
  | { readonly e: "latch-refused"; readonly at: Instant; readonly call: number; readonly code: string }
  | { readonly e: "breaking"; readonly at: Instant; readonly key: string; readonly token: string }
  | { readonly e: "break-result"; readonly at: Instant; readonly key: string; readonly answer: string }
  /** A quorum granted a lock: how many rounds it took until a majority gave one fencing number, and whose votes it counted. */
  | (VoteCount & {
      readonly e: "vote";
      readonly at: Instant;
      readonly token: string;
      readonly rounds: number;
    })
  /** A majority confirmed that it lasts longer. */
  | (VoteCount & { readonly e: "extended"; readonly at: Instant })
  /** The process could not run since then. */
  | { readonly e: "stalled"; readonly at: Instant; readonly since: Instant }
  | { readonly e: "unhandled-error"; readonly at: Instant; readonly error: string }
  | { readonly e: "memory"; readonly at: Instant; readonly bytes: number }
  | { readonly e: "quiescent"; readonly at: Instant; readonly round: number }
  | { readonly e: "closed"; readonly at: Instant };

/** What the one who conducts the run did and saw. */
export type CoordinatorRecord =
  | { readonly e: "phase"; readonly at: Instant; readonly phase: Phase; readonly round: number }
  | {
      readonly e: "fault";
      readonly at: Instant;
      readonly faultId: number;
      readonly kind: FaultKind;
      readonly target: string;
    }
  | { readonly e: "fault-ended"; readonly at: Instant; readonly faultId: number }
  /** It was killed, by the plan. */
  | { readonly e: "killed"; readonly at: Instant; readonly process: string }
  /** It ended, and nobody had told it to. */
  | { readonly e: "crashed"; readonly at: Instant; readonly process: string; readonly how: string }
  /** A server was killed, was started again, or answers: the run that it is about is the one before it until it answers. */
  | {
      readonly e: "server";
      readonly at: Instant;
      readonly node: number;
      readonly state: ServerState;
      readonly run: string;
    }
  | (Failover & { readonly e: "failover" })
  /** Keys that nobody needs any more are there. */
  | {
      readonly e: "residue";
      readonly at: Instant;
      readonly round: number;
      readonly node: number;
      readonly keys: readonly string[];
    }
  | { readonly e: "clean"; readonly at: Instant; readonly round: number }
  /** Not all processes came to rest in time. */
  | { readonly e: "not-quiescent"; readonly at: Instant; readonly round: number; readonly process: string }
  /** How many scripts all servers have run so far. */
  | { readonly e: "scripts"; readonly at: Instant; readonly count: number };

export type ServerState = "killed" | "starting" | "up";

/** One server took the place of another, or two of a group said that they are the primary. */
export interface Failover {
  /** When it was seen. */
  readonly at: Instant;
  /** When it was not so yet. */
  readonly since: Instant;
  /** From when on there was one primary again. */
  readonly until: Instant;
  /** Which said that it is the primary now, by its port. */
  readonly newPrimary: number;
  readonly isPromotion: boolean;
  /** Of the run's fixed keys those that it concerns; null: all. */
  readonly keys: readonly string[] | null;
}

/** `calm`: before the first storm. */
export type Phase = "calm" | "storm" | "quiet" | "end";

/** What the protected resource did, in its order. */
export type ResourceRecord =
  | {
      readonly e: "read";
      readonly at: Instant;
      readonly key: string;
      readonly token: string;
      readonly from: string;
      readonly accepted: boolean;
      /** By a reader, beside others. */
      readonly shared?: boolean;
    }
  | {
      readonly e: "write";
      readonly at: Instant;
      readonly key: string;
      readonly token: string;
      readonly from: string;
      readonly accepted: boolean;
      /** The counter that checks tokens: what it was, and what was written if accepted. */
      readonly checked: readonly [before: number, after: number];
      /** The one that does not: always written. */
      readonly unchecked: readonly [before: number, after: number];
    };

/** The clock that all processes share. */
export class SharedClock {
  readonly #epoch: bigint;
  readonly #offsetMs: number;

  constructor(epoch: bigint) {
    this.#epoch = epoch;
    this.#offsetMs = this.now() - performance.now();
  }

  now(): Instant {
    return Number(process.hrtime.bigint() - this.#epoch) / 1e6;
  }

  /** Of a moment on the scale of `performance.now()`. */
  fromPerformanceTime(performanceMs: number): Instant {
    return performanceMs + this.#offsetMs;
  }
}

/** One process's part of the history: written at once, so that it is there when the process is killed. */
export class HistoryFile<Entry extends { readonly at: Instant }> {
  readonly #file: number;

  constructor(path: string) {
    this.#file = openSync(path, "a");
  }

  write(record: Entry): void {
    writeSync(this.#file, `${JSON.stringify(record, rounded)}\n`);
  }
}

/** Microseconds are enough. */
function rounded(_name: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isInteger(value) ? Math.round(value * 1_000) / 1_000 : value;
}
