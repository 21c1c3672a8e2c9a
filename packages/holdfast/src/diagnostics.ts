import { channel, tracingChannel, type Channel, type TracingChannel } from "node:diagnostics_channel";

import type { LossReason } from "./errors.ts";

/**
 * The events of Holdfast and their payloads. The channel of an event in `node:diagnostics_channel` is `holdfast:` and its name.
 * Payloads never contain a token. Without a subscriber no payload is computed.
 */
export interface Diagnostics {
  /** A caller waits in the local queue. */
  queued: { key: string; position: number | undefined };
  /** A lease was lost. */
  lost: { key: string; reason: LossReason; fencingToken: bigint };
  /** A renewal began late: `lateMs` after its time, with `marginMs` of validity left. */
  "late-renewal": { key: string; lateMs: number; marginMs: number };
  /** A grant was handed over in memory. `fencingToken`: of the new lease. */
  handover: { key: string; fencingToken: bigint };
  /** An operator ended a grant through this `Locks`. */
  broken: { key: string; fencingToken: bigint; reason: string };
  /**
   * A quorum granted the lock. `rounds`: how many rounds passed until a majority of the nodes agreed on one fencing token.
   * `granted`: how many nodes had granted by then. `votes`: the counted votes.
   */
  vote: {
    key: string;
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
  leaked: { key: string; fencingToken: bigint };
}

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

/** The context of the tracing channel `holdfast:acquire`. */
export interface AcquireTrace {
  key: string;
  /** The longest wait, ms; 0 for a try. */
  waitMs: number;
  outcome?: "granted" | "held";
  fencingToken?: bigint;
}

/** The context of the tracing channel `holdfast:renew`. */
export interface RenewTrace {
  key: string;
  /** The remaining validity at the start of the renewal, ms. */
  marginMs: number;
  outcome?: "extended" | "lost" | "unknown";
}

/** The context of the tracing channel `holdfast:release`. */
export interface ReleaseTrace {
  key: string;
  /** Whether the lease held the lock until its release. */
  released?: boolean;
}

/** The context of the tracing channel `holdfast:hold`: a lease, from its grant to its end. */
export interface HoldTrace {
  key: string;
  fencingToken: bigint;
  /** How the lease ended. */
  reason?: LossReason | "transferred";
  /** How long after the end of its validity the lease ended, ms; 0: in time. */
  overrunMs?: number;
}

const events: Partial<Record<keyof Diagnostics, Channel>> = {};

/** The tracing channels of operations with a start and an end. */
export const traces = {
  acquire: tracingChannel("holdfast:acquire") as TracingChannel<AcquireTrace, AcquireTrace>,
  renew: tracingChannel("holdfast:renew") as TracingChannel<RenewTrace, RenewTrace>,
  release: tracingChannel("holdfast:release") as TracingChannel<ReleaseTrace, ReleaseTrace>,
  hold: tracingChannel("holdfast:hold") as TracingChannel<HoldTrace, HoldTrace>,
};

/** Publishes an event if its channel has subscribers. */
export function publish<Name extends keyof Diagnostics>(name: Name, message: () => Diagnostics[Name]): void {
  const target = (events[name] ??= channel(`holdfast:${name}`));
  if (target.hasSubscribers) {
    target.publish(message());
  }
}

/** Runs `operation`, traced if the channel has subscribers. `describe` creates the context, and `finish` adds the result. */
export function trace<Context extends object, Result>(
  trace: TracingChannel<Context, Context>,
  describe: () => NoInfer<Context>,
  operation: () => Promise<Result>,
  finish: (context: NoInfer<Context>, result: Result) => void,
): Promise<Result> {
  if (!hasSubscribers(trace)) {
    return operation();
  }
  const context = describe();
  // tracePromise would publish the result, and a lease is secret.
  const done = trace.start.runStores(context, async () => {
    try {
      const result = await operation();
      finish(context, result);
      return result;
    } catch (error) {
      Object.assign(context, { error });
      trace.error.publish(context);
      throw error;
    } finally {
      trace.asyncStart.publish(context);
      trace.asyncEnd.publish(context);
    }
  });
  trace.end.publish(context);
  return done;
}

export function hasSubscribers<Context extends object>(trace: TracingChannel<Context, Context>): boolean {
  return (
    trace.start.hasSubscribers ||
    trace.end.hasSubscribers ||
    trace.asyncStart.hasSubscribers ||
    trace.asyncEnd.hasSubscribers ||
    trace.error.hasSubscribers
  );
}
