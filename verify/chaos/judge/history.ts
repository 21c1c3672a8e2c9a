import { openSync, writeSync } from "node:fs";

import type { FaultKind } from "../plan/fault-kinds.ts";
import type { LockKind } from "../run/lock.ts";

/** Milliseconds since the run's epoch on the monotonic clock that all processes of the machine share. */
export type Instant = number;

/**
 * How a lease was requested. `attempt` has an attempt id, as have its repeats. `probe` is a request in a quiet period, which must succeed.
 * `adopt` continues a transferred lease. `downgrade` is the reader into which a writer of this process changed. `nested` is a request of the
 * current holder.
 */
export type RequestKind = "acquire" | "try" | "work" | "attempt" | "adopt" | "probe" | "downgrade" | "nested";

/** The parameters of a request for a lease. */
export interface LeaseRequest {
  /** One of the keys, if there are several. */
  readonly key: string;
  readonly kind: RequestKind;
  readonly waitMs: number;
  /** The id of a named attempt. */
  readonly attemptId?: string;
  /** The kind of lock. Without it the lock is a mutex. */
  readonly lockKind?: LockKind;
  /** The permits of a semaphore. */
  readonly permits?: number;
  /** All keys of a request for several keys. */
  readonly keys?: readonly string[];
  /** The leases of one owner of a reentrant lock share this id. */
  readonly reentrantHold?: string;
}

/** A request to a latch. With an attempt the request counts the latch down, and without one the request waits. */
export interface LatchRequest {
  readonly key: string;
  /** Calls of one `Latch` object in the process share this number. */
  readonly handle: number;
  readonly count: number;
  readonly ttlMs: number;
  readonly attemptId?: string;
  readonly waitMs: number;
  /** Whether the call is in a quiet period, in which the latch must open. */
  readonly isProbe: boolean;
}

/** The votes that a client counted for a lock. */
export interface VoteCount {
  readonly key: string;
  readonly votes: readonly CountedVote[];
}

export interface CountedVote {
  /** The index of the server. */
  readonly node: number;
  /** The start of the id of the server run that gave the vote. See {@link shortRunId}. */
  readonly run: string;
  readonly via: "reply" | "notification";
  /** The remaining validity of the vote, in ms. */
  readonly remainingMs: number;
}

/** A prefix of a run id. It distinguishes the runs of a history. */
export function shortRunId(runId: string): string {
  return runId.slice(0, 8);
}

/** The records of a client process. A lease has the number of its request. */
export type ClientRecord =
  | { readonly e: "opened"; readonly at: Instant; readonly pid: number; readonly handover: boolean }
  | (LeaseRequest & { readonly e: "requested"; readonly at: Instant; readonly requestId: number })
  | {
      readonly e: "granted";
      readonly at: Instant;
      readonly requestId: number;
      readonly token: string;
      readonly validUntil: Instant;
      /** The token of each key, if there are several keys. */
      readonly tokens?: Readonly<Record<string, string>>;
    }
  | { readonly e: "refused"; readonly at: Instant; readonly requestId: number; readonly code: string }
  /** A new end of the validity that the lease reports. */
  | { readonly e: "valid"; readonly at: Instant; readonly requestId: number; readonly validUntil: Instant }
  /** A visit at the resource with the lease, and the answer of the resource. */
  | { readonly e: "used"; readonly at: Instant; readonly requestId: number; readonly accepted: boolean }
  | { readonly e: "lost"; readonly at: Instant; readonly requestId: number; readonly reason: string }
  /** A timer of the recorder found the validity expired for 50 ms without a reported loss. */
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
  /** A writer is about to become a reader, which the next record requests. */
  | { readonly e: "downgraded"; readonly at: Instant; readonly requestId: number }
  | (LatchRequest & { readonly e: "latch"; readonly at: Instant; readonly call: number })
  /** The countdown or the wait succeeded, with this remaining count. */
  | { readonly e: "latch-reply"; readonly at: Instant; readonly call: number; readonly remaining: number }
  | { readonly e: "latch-refused"; readonly at: Instant; readonly call: number; readonly code: string }
  | { readonly e: "breaking"; readonly at: Instant; readonly key: string; readonly token: string }
  | { readonly e: "break-result"; readonly at: Instant; readonly key: string; readonly answer: string }
  /** A quorum granted a lock. The record has the rounds until a majority agreed on one fencing token, and the counted votes. */
  | (VoteCount & {
      readonly e: "vote";
      readonly at: Instant;
      readonly token: string;
      readonly rounds: number;
    })
  /** A majority confirmed an extension. */
  | (VoteCount & { readonly e: "extended"; readonly at: Instant })
  /** The process was stalled since `since`. */
  | { readonly e: "stalled"; readonly at: Instant; readonly since: Instant }
  | { readonly e: "unhandled-error"; readonly at: Instant; readonly error: string }
  | { readonly e: "memory"; readonly at: Instant; readonly bytes: number }
  | { readonly e: "quiescent"; readonly at: Instant; readonly round: number }
  | { readonly e: "closed"; readonly at: Instant };

/** The records of the coordinator, which runs the plan. */
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
  /** The plan killed the process. */
  | { readonly e: "killed"; readonly at: Instant; readonly process: string }
  /** The process ended without an order to end. */
  | { readonly e: "crashed"; readonly at: Instant; readonly process: string; readonly how: string }
  /** A server was killed, was started, or replies again. Until the server replies, the record has the id of the former run. */
  | {
      readonly e: "server";
      readonly at: Instant;
      readonly node: number;
      readonly state: ServerState;
      readonly run: string;
      /** At its end, whether the run has every grant on its disk; at its start, whether it will. */
      readonly durable: boolean;
    }
  | (Failover & { readonly e: "failover" })
  /** The servers have keys that should be removed. */
  | {
      readonly e: "residue";
      readonly at: Instant;
      readonly round: number;
      readonly node: number;
      readonly keys: readonly string[];
    }
  | { readonly e: "clean"; readonly at: Instant; readonly round: number }
  /** A process did not come to rest in time. */
  | { readonly e: "not-quiescent"; readonly at: Instant; readonly round: number; readonly process: string }
  /** The number of scripts that all servers have run so far. */
  | { readonly e: "scripts"; readonly at: Instant; readonly count: number };

export type ServerState = "killed" | "starting" | "up";

/** One server replaced another, or two servers of a group reported the role of the primary. */
export interface Failover {
  /** When the coordinator noticed the failover. */
  readonly at: Instant;
  /** The last moment before the failover at which the coordinator saw the former state. */
  readonly since: Instant;
  /** The moment from which on there was one primary again. */
  readonly until: Instant;
  /** The port of the server that reports the role of the primary now. */
  readonly newPrimary: number;
  readonly isPromotion: boolean;
  /** The fixed keys of the run that the failover concerns. null: all keys. */
  readonly keys: readonly string[] | null;
}

/** `calm` is the time before the first storm. */
export type Phase = "calm" | "storm" | "quiet" | "end";

/** The records of the protected resource, in order. */
export type ResourceRecord =
  | {
      readonly e: "read";
      readonly at: Instant;
      readonly key: string;
      readonly token: string;
      readonly from: string;
      readonly accepted: boolean;
      /** A visit of a reader, which may overlap other readers. */
      readonly shared?: boolean;
    }
  | {
      readonly e: "write";
      readonly at: Instant;
      readonly key: string;
      readonly token: string;
      readonly from: string;
      readonly accepted: boolean;
      /** The counter that checks tokens: its value, and the value written if the visit was accepted. */
      readonly checked: readonly [before: number, after: number];
      /** The counter that does not check tokens, which is always written. */
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

  /** Converts a time of `performance.now()`. */
  fromPerformanceTime(performanceMs: number): Instant {
    return performanceMs + this.#offsetMs;
  }
}

/** The history file of one process. Each record is written at once, so that a kill does not lose the record. */
export class HistoryFile<Entry extends { readonly at: Instant }> {
  readonly #file: number;

  constructor(path: string) {
    this.#file = openSync(path, "a");
  }

  write(record: Entry): void {
    writeSync(this.#file, `${JSON.stringify(record, rounded)}\n`);
  }
}

/** Times have the resolution of a microsecond. */
function rounded(_name: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isInteger(value) ? Math.round(value * 1_000) / 1_000 : value;
}
