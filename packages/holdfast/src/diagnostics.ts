import { channel, tracingChannel, type Channel, type TracingChannel } from "node:diagnostics_channel";

import type { LossReason } from "./errors.ts";

/**
 * What Holdfast tells of itself, over `node:diagnostics_channel`. Payloads never carry a token.
 * Nothing is computed without a subscriber.
 */
export interface Diagnostics {
  queued: { key: string; position: number | undefined };
  lost: { key: string; reason: LossReason; fencingToken: bigint };
  "late-renewal": { key: string; lateMs: number; marginMs: number };
  handover: { key: string; fencingToken: bigint };
  broken: { key: string; fencingToken: bigint; reason: string };
  /**
   * A quorum granted the lock. `rounds`: how many it took until a majority of the nodes gave the same fencing number; `granted`:
   * how many nodes had said yes by then; `votes`: which.
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
   * A majority of a quorum prolonged the grant. `votes`: which nodes had had it without a break. `fencingToken`: of the grant;
   * undefined where it was acquired in another process.
   */
  extended: { key: string; fencingToken: bigint | undefined; votes: readonly CountedVote[] };
  /** `clockOffsetMs`: the server's clock less ours, as far as it is known. */
  node: { node: string; event: string; clockOffsetMs?: number | undefined; detail?: unknown };
  leaked: { key: string; fencingToken: bigint };
}

/** One node's vote, as it was counted. */
export interface CountedVote {
  node: string;
  /** Which run of the server gave it: `run_id` of its `INFO`. Another one after each restart. */
  runId: string;
  /** How it came: as the answer to a question, or pushed by who gave the lock on. */
  via: "reply" | "notification";
  /** For how long it was valid still, ms. */
  remainingMs: number;
}

export interface AcquireTrace {
  key: string;
  /** Of several keys that are taken in one step, in sorted order; `key` and `fencingToken` are those of the first. */
  keys?: readonly string[];
  waitMs: number;
  outcome?: "granted" | "held";
  fencingToken?: bigint;
}
export interface RenewTrace {
  key: string;
  /** What was left of the validity when the renewal began, ms. */
  marginMs: number;
  outcome?: "renewed" | "lost" | "unknown";
}
export interface ReleaseTrace {
  key: string;
  released?: boolean;
}
export interface HoldTrace {
  key: string;
  fencingToken: bigint;
  /** How it ended. */
  reason?: LossReason | "transferred";
  /** How long after the end of its validity the hold was given up, ms; 0: in time. */
  overrunMs?: number;
}

const events: Partial<Record<keyof Diagnostics, Channel>> = {};

/** Operations with a beginning and an end. */
export const traces = {
  acquire: tracingChannel("holdfast:acquire") as TracingChannel<unknown, AcquireTrace>,
  renew: tracingChannel("holdfast:renew") as TracingChannel<unknown, RenewTrace>,
  release: tracingChannel("holdfast:release") as TracingChannel<unknown, ReleaseTrace>,
  hold: tracingChannel("holdfast:hold") as TracingChannel<unknown, HoldTrace>,
};

/** Publishes what `message` makes, if anybody listens. */
export function publish<Name extends keyof Diagnostics>(name: Name, message: () => Diagnostics[Name]): void {
  const target = (events[name] ??= channel(`holdfast:${name}`));
  if (target.hasSubscribers) {
    target.publish(message());
  }
}

/** Runs `operation` under a tracing channel, if anybody listens; `describe` makes the context that `finish` completes. */
export function trace<Context extends object, Result>(
  trace: TracingChannel<unknown, Context>,
  describe: () => NoInfer<Context>,
  operation: () => Promise<Result>,
  finish: (context: NoInfer<Context>, result: Result) => void,
): Promise<Result> {
  if (!hasSubscribers(trace)) {
    return operation();
  }
  const context = describe();
  // Not tracePromise: it would hand out the result, and a lease is a secret.
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

export function hasSubscribers<Context extends object>(trace: TracingChannel<unknown, Context>): boolean {
  return (
    trace.start.hasSubscribers ||
    trace.end.hasSubscribers ||
    trace.asyncStart.hasSubscribers ||
    trace.asyncEnd.hasSubscribers ||
    trace.error.hasSubscribers
  );
}
