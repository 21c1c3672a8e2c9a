import type { LockMode } from "./driver.ts";
import type { LockErrorCode, LossReason } from "./errors.ts";
import { channel, tracingChannel, type EventChannel, type TraceChannel } from "./runtime/channels.ts";

/**
 * The events of Holdfast and their payloads. The channel of an event in `node:diagnostics_channel` is `holdfast:` and its name.
 * Payloads never contain a token. Without a subscriber no payload is computed.
 * The names and fields of all channels are stable: semantic versioning covers them. A later version may add fields.
 */
export interface Diagnostics {
  /**
   * A call of acquire waits in the queue of this process, or at the engine. A call that waits first in the process and then at the
   * engine publishes both. `position`: in that queue, from 0, if known.
   */
  queued: LockFacts & { call: number; where: WaitPlace; position: number | undefined };
  /** A call that was queued has been granted the lock. `where`: the last place of the wait. */
  granted: LockFacts & {
    call: number;
    where: WaitPlace;
    queuedMs: number;
    via: GrantedVia;
    fencingToken: bigint;
  };
  /** A lease was lost. */
  lost: LeaseFacts & { reason: LossReason };
  /** A renewal began late: `lateMs` after its time, with `marginMs` of validity left. */
  "late-renewal": LeaseFacts & { lateMs: number; marginMs: number };
  /** A grant was handed over in memory. `fencingToken`: of the new lease. */
  handover: LeaseFacts;
  /** An operator ended a grant through this `Locks`. */
  broken: { key: string; instance: number; engine: string; fencingToken: bigint; reason: string };
  /** `checkFence` has answered. */
  "fence-check": {
    key: string;
    instance: number;
    engine: string;
    fencingToken: bigint;
    result: "current" | "stale" | "unknown";
  };
  /**
   * A quorum granted the lock. `rounds`: how many rounds passed until a majority of the nodes agreed on one fencing token.
   * `granted`: how many nodes had granted by then. `votes`: the counted votes.
   */
  vote: {
    key: string;
    engine: string;
    fencingToken: bigint;
    rounds: number;
    granted: number;
    nodes: number;
    votes: readonly CountedVote[];
  };
  /**
   * A majority of a quorum extended the grant. `votes`: the nodes that have held the grant without a break. `fencingToken`: of the
   * grant; undefined if another process acquired the grant.
   */
  extended: { key: string; fencingToken: bigint | undefined; votes: readonly CountedVote[] };
  /** The state of a server changed. `clockOffsetMs`: the server's clock minus the clock of this process, if known. */
  node: { node: string; event: string; clockOffsetMs?: number | undefined; detail?: unknown };
  /** A lease was garbage-collected without a release. The grant is no longer renewed. */
  leaked: LeaseFacts;
}

/** The facts that all events of one lock have. */
export interface LockFacts {
  key: string;
  /** The `Locks`: its number in this process, from 1. */
  instance: number;
  /** The name of the engine: `Capabilities.engine`. */
  engine: string;
  /** Unknown for an adopted lease. */
  kind: "mutex" | "read-write" | "semaphore" | "unknown";
  /** As in the lock service. Unknown for an adopted lease. */
  mode: "exclusive" | "read" | "write" | "semaphore" | "unknown";
}

/** The facts that all events of one lease have. */
export interface LeaseFacts extends LockFacts {
  fencingToken: bigint;
}

/** Where a call waits: in the queue of its process, or in the queue of the engine. */
export type WaitPlace = "process" | "engine";

/**
 * How a grant arrived: by the reply to a request, by a message of the engine, or by a hand-over in this process. `shared`: the call shares
 * the grant of another call with the same `attemptId`.
 */
export type GrantedVia = "reply" | "message" | "handover" | "shared";

/**
 * How an acquire ended. `held`: a try found another holder. `wait-timeout`: `waitMs` has passed. `aborted`: by the signal or `close()`.
 * `quorum-failed`: too few nodes agreed. `unavailable`: the engine failed. `error`: any other failure.
 */
export type AcquireOutcome =
  "granted" | "held" | "wait-timeout" | "aborted" | "quorum-failed" | "unavailable" | "error";

/** A counted vote of one node. */
export interface CountedVote {
  node: string;
  /** The run of the server that gave the vote: `run_id` of its `INFO`, which changes at each restart. */
  runId: string;
  /** Whether the vote came by the reply to a request, or by a notification. */
  via: "reply" | "notification";
  /** The remaining validity when the vote was counted, ms. */
  remainingMs: number;
}

// The contexts have all their fields from the start, because objects that grow later are slow. Fields of the result are undefined first.

/** The context of the tracing channel `holdfast:acquire`. */
export interface AcquireTrace extends LockFacts {
  /** The number of the call in this process, as in `queued` and `granted`. */
  call: number;
  /** The longest wait, ms; 0 for a try. */
  waitMs: number;
  ttlMs: number;
  /** A subscriber of `start` may set labels here. The holder shows them with its own labels, unless they exceed the limits of labels. */
  labels: Readonly<Record<string, string>> | undefined;
  /** Undefined until the end of the call, as the fields after it. */
  outcome: AcquireOutcome | undefined;
  /** The time in queues, ms; 0: the call was not queued. */
  queuedMs: number | undefined;
  /** After a grant. */
  via: GrantedVia | undefined;
  /** After a grant. */
  fencingToken: bigint | undefined;
  /** After a `LockError`. */
  errorCode: LockErrorCode | undefined;
  /** After a failure: the error of the call. */
  error: unknown;
}

/** The context of the tracing channel `holdfast:renew`. */
export interface RenewTrace extends LeaseFacts {
  /** The TTL that the renewal requests, ms. */
  ttlMs: number;
  /** The remaining validity at the start of the renewal, ms. */
  marginMs: number;
  outcome: "extended" | "lost" | "unknown" | undefined;
  /** After `unknown` with a `LockError`. */
  errorCode: LockErrorCode | undefined;
}

/** The context of the tracing channel `holdfast:release`. */
export interface ReleaseTrace extends LeaseFacts {
  /** Whether the lease held the lock until its release. Absent after a failure. */
  released: boolean | undefined;
  /** After a `LockError`. */
  errorCode: LockErrorCode | undefined;
  /** After a failure: the error of the call. */
  error: unknown;
}

/** The context of the tracing channel `holdfast:hold`: a lease, from its grant to its end. */
export interface HoldTrace extends LeaseFacts {
  /** The call of acquire. Undefined for an adopted lease, and if `holdfast:acquire` had no subscriber at the call. */
  call: number | undefined;
  ttlMs: number;
  /** How the lease ended. */
  reason: LossReason | "transferred" | undefined;
  /** How long the lease existed, ms. */
  heldMs: number | undefined;
  /** How long after the end of its validity the lease ended, ms; 0: in time. */
  overrunMs: number | undefined;
}

const events: Partial<Record<keyof Diagnostics, EventChannel>> = {};

/** The tracing channels of operations with a start and an end. */
export const traces = {
  acquire: tracingChannel("holdfast:acquire") as TraceChannel<AcquireTrace>,
  renew: tracingChannel("holdfast:renew") as TraceChannel<RenewTrace>,
  release: tracingChannel("holdfast:release") as TraceChannel<ReleaseTrace>,
  hold: tracingChannel("holdfast:hold") as TraceChannel<HoldTrace>,
};

/** Publishes an event if its channel has subscribers. */
export function publish<Name extends keyof Diagnostics>(name: Name, message: () => Diagnostics[Name]): void {
  const target = (events[name] ??= channel(`holdfast:${name}`));
  if (target.hasSubscribers) {
    target.publish(message());
  }
}

/** The end of a traced operation. */
export type Settled<Result> = { readonly result: Result } | { readonly error: unknown };

/** Runs `operation`, traced if the channel has subscribers. `describe` creates the context, and `finish` adds the result or the error. */
export function trace<Context extends object, Result>(
  trace: TraceChannel<Context>,
  describe: () => NoInfer<Context>,
  operation: () => Promise<Result>,
  finish: (context: NoInfer<Context>, settled: Settled<Result>) => void,
): Promise<Result> {
  if (!hasSubscribers(trace)) {
    return operation();
  }
  const context = describe();
  // tracePromise would publish the result, and a lease is secret.
  const settle = (settled: Settled<Result>): void => {
    finish(context, settled);
    if ("error" in settled) {
      trace.error.publish(context);
    }
    trace.asyncStart.publish(context);
    trace.asyncEnd.publish(context);
  };
  const done = trace.start.runStores(context, () =>
    operation().then(
      (result) => {
        settle({ result });
        return result;
      },
      (error: unknown) => {
        (context as { error?: unknown }).error = error;
        settle({ error });
        throw error;
      },
    ),
  );
  trace.end.publish(context);
  return done;
}

/** Whether an event has subscribers. */
export function isPublished(name: keyof Diagnostics): boolean {
  return (events[name] ??= channel(`holdfast:${name}`)).hasSubscribers;
}

const numbersKey = Symbol.for("holdfast.numbers");

/** The next number of a `Locks` or of a call, from 1. All copies of the library in this process share the numbers. */
export function nextNumber(of: "instance" | "call"): number {
  const shared = globalThis as { [numbersKey]?: Record<typeof of, number> };
  const numbers = (shared[numbersKey] ??= { instance: 0, call: 0 });
  numbers[of] += 1;
  return numbers[of];
}

/** The `Locks` of a lock, as its events name it. */
export interface FactsHost {
  readonly instance: number;
  readonly driver: { readonly capabilities: { readonly engine?: string | undefined } };
}

/** The name of the engine in events. */
export function engineOf({ driver }: FactsHost): string {
  return driver.capabilities.engine ?? "other";
}

/** The facts of the `Locks` for events without a known kind of lock. */
export function engineFacts(host: FactsHost): Pick<LockFacts, "instance" | "engine"> {
  return { instance: host.instance, engine: engineOf(host) };
}

/** The kind of a lock in events. @param lockMode null: unknown */
export function kindOf(lockMode: LockMode | null | undefined): LockFacts["kind"] {
  return lockMode === null ? "unknown" : (lockMode?.kind ?? "mutex");
}

/** The mode of a lock in events. @param lockMode null: unknown */
export function modeOf(lockMode: LockMode | null | undefined): LockFacts["mode"] {
  if (lockMode === null) {
    return "unknown";
  } else if (lockMode === undefined) {
    return "exclusive";
  }
  return lockMode.kind === "semaphore" ? "semaphore" : lockMode.mode;
}

export function hasSubscribers<Context extends object>(trace: TraceChannel<Context>): boolean {
  return (
    trace.start.hasSubscribers ||
    trace.end.hasSubscribers ||
    trace.asyncStart.hasSubscribers ||
    trace.asyncEnd.hasSubscribers ||
    trace.error.hasSubscribers
  );
}
