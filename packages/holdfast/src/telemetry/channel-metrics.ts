import { subscribe, unsubscribe } from "node:diagnostics_channel";

import type {
  AcquireOutcome,
  AcquireTrace,
  Diagnostics,
  HoldTrace,
  ReleaseTrace,
  RenewTrace,
  WaitPlace,
} from "../diagnostics.ts";
import { isLockError, type LossReason, type NodeVote } from "../errors.ts";
import { systemClock } from "../runtime/clock.ts";
import type { CounterName } from "./instruments.ts";
import type { KeyGroups } from "./key-groups.ts";
import type { Recorder } from "./recorder.ts";
import { startAtZero } from "./start-at-zero.ts";
import { SeriesCache } from "./series-cache.ts";

/** A call of acquire that has not ended. */
interface OpenCall {
  readonly group: string;
  readonly startedAt: number;
  where: WaitPlace | undefined;
}

type Listener = (message: unknown) => void;

/** Records the events of the diagnostics channels. Only calls and leases that begin after the creation are counted. */
export class ChannelMetrics {
  readonly #values: SeriesCache;
  readonly #groups: KeyGroups;
  readonly #calls = new Map<number, OpenCall>();
  readonly #holds = new Map<HoldTrace, string>();
  readonly #renewals = new WeakMap<RenewTrace, number>();
  readonly #listeners: readonly (readonly [channel: string, listener: Listener])[];

  constructor(recorder: Recorder, groups: KeyGroups) {
    this.#values = new SeriesCache(recorder);
    this.#groups = groups;
    this.#listeners = [
      on<AcquireTrace>("tracing:holdfast:acquire:start", (call) => this.#acquireStarted(call)),
      on<AcquireTrace>("tracing:holdfast:acquire:asyncEnd", (call) => this.#acquireEnded(call)),
      on<Diagnostics["queued"]>("holdfast:queued", (wait) => this.#queued(wait)),
      on<HoldTrace>("tracing:holdfast:hold:start", (hold) => this.#holdStarted(hold)),
      on<HoldTrace>("tracing:holdfast:hold:asyncEnd", (hold) => this.#holdEnded(hold)),
      on<RenewTrace>("tracing:holdfast:renew:start", (renewal) => {
        this.#renewals.set(renewal, systemClock.now());
      }),
      on<RenewTrace>("tracing:holdfast:renew:asyncEnd", (renewal) => this.#renewed(renewal)),
      on<ReleaseTrace>("tracing:holdfast:release:asyncEnd", ({ key, released }) =>
        this.#count("holdfast.releases", key, releaseOutcome(released)),
      ),
      on<Diagnostics["lost"]>("holdfast:lost", ({ key, reason }) =>
        this.#count("holdfast.lost", key, reason),
      ),
      on<Diagnostics["broken"]>("holdfast:broken", ({ key }) => this.#count("holdfast.breaks", key)),
      on<Diagnostics["leaked"]>("holdfast:leaked", ({ key }) => this.#count("holdfast.leaked", key)),
      on<Diagnostics["fence-check"]>("holdfast:fence-check", ({ key, result }) =>
        this.#count("holdfast.fence.checks", key, result),
      ),
      on<Diagnostics["vote"]>("holdfast:vote", (vote) => recordVote(this.#values, vote)),
    ];
    startAtZero(recorder, groups.known);
    for (const [channel, listener] of this.#listeners) {
      subscribe(channel, listener);
    }
  }

  /** Unsubscribes. Open holds and waits are no longer counted. */
  close(): void {
    for (const [channel, listener] of this.#listeners) {
      unsubscribe(channel, listener);
    }
    for (const { group, where } of this.#calls.values()) {
      this.#changeWaiting(group, where, -1);
    }
    for (const [{ kind }, group] of this.#holds) {
      this.#values.add("holdfast.held", -1, group, kind);
    }
  }

  #acquireStarted({ call, key }: AcquireTrace): void {
    const group = this.#groups.of(key);
    this.#calls.set(call, { group, startedAt: systemClock.now(), where: undefined });
  }

  #queued({ call, where }: Diagnostics["queued"]): void {
    const open = this.#calls.get(call);
    if (open) {
      this.#changeWaiting(open.group, open.where, -1);
      this.#changeWaiting(open.group, where, 1);
      open.where = where;
    }
  }

  #acquireEnded({ call, kind, mode, outcome, queuedMs = 0, via, error }: AcquireTrace): void {
    const open = this.#calls.get(call);
    if (!open) {
      return;
    }
    this.#calls.delete(call);
    const { group, startedAt, where } = open;
    const values = this.#values;
    const result = acquireOutcome(outcome);
    const isFailure = outcome === "error" || outcome === "unavailable" || outcome === "quorum-failed";
    const failure = isFailure ? [errorType(error)] : [];
    values.add(
      "holdfast.acquire.duration",
      (systemClock.now() - startedAt) / 1000,
      group,
      result,
      ...failure,
    );
    this.#changeWaiting(group, where, -1);
    if (queuedMs > 0) {
      values.add("holdfast.wait.duration", queuedMs / 1000, group, result);
    }
    if (outcome === "granted") {
      values.add("holdfast.grants", 1, group, kind, mode, via ?? "reply");
    } else {
      recordFailedVotes(values, error);
    }
  }

  #changeWaiting(group: string, where: WaitPlace | undefined, change: 1 | -1): void {
    if (where !== undefined) {
      this.#values.add("holdfast.waiting", change, group, where);
    }
  }

  #holdStarted(hold: HoldTrace): void {
    const group = this.#groups.of(hold.key);
    this.#holds.set(hold, group);
    this.#values.add("holdfast.held", 1, group, hold.kind);
  }

  #holdEnded(hold: HoldTrace): void {
    const group = this.#holds.get(hold);
    if (group === undefined) {
      return;
    }
    this.#holds.delete(hold);
    const { kind, heldMs = 0, overrunMs = 0, reason = "released" } = hold;
    this.#values.add("holdfast.held", -1, group, kind);
    this.#values.add("holdfast.hold.duration", heldMs / 1000, group, holdEnd(reason));
    if (overrunMs > 0) {
      this.#values.add("holdfast.overrun.duration", overrunMs / 1000, group);
    }
  }

  #renewed(renewal: RenewTrace): void {
    const startedAt = this.#renewals.get(renewal);
    if (startedAt !== undefined) {
      const group = this.#groups.of(renewal.key);
      const { outcome = "unknown", marginMs, ttlMs } = renewal;
      const tookMs = systemClock.now() - startedAt;
      this.#values.add("holdfast.renew.duration", tookMs / 1000, group, renewOutcome(outcome));
      this.#values.add("holdfast.renew.margin", Math.max(0, marginMs / ttlMs), group);
    }
  }

  #count(name: CounterName, key: string, ...more: readonly string[]): void {
    this.#values.add(name, 1, this.#groups.of(key), ...more);
  }
}

/** Records the votes of an election that succeeded. */
export function recordVote(
  values: SeriesCache,
  { engine, granted, nodes, votes }: Diagnostics["vote"],
): void {
  values.add("holdfast.quorum.margin", granted - (Math.floor(nodes / 2) + 1), engine);
  for (const { node } of votes) {
    values.add("holdfast.quorum.votes", 1, node, "granted");
  }
}

/** Records the votes of a `QuorumError`. */
export function recordFailedVotes(values: SeriesCache, error: unknown): void {
  const votes: readonly NodeVote[] = isLockError(error, "quorum-not-reached") ? error.votes : [];
  for (const { node, vote } of votes) {
    values.add("holdfast.quorum.votes", 1, node, vote);
  }
}

/** The value of `outcome` for an acquire. */
export function acquireOutcome(outcome: AcquireOutcome = "error"): string {
  return outcome === "granted" ? "acquired" : outcome.replace("-", "_");
}

/** The value of `outcome` for a renewal. */
function renewOutcome(outcome: "extended" | "lost" | "unknown"): string {
  return outcome === "extended" ? "renewed" : outcome;
}

/** The value of `end` for a lease. */
export function holdEnd(reason: LossReason | "transferred"): string {
  switch (reason) {
    case "released":
    case "expired":
    case "broken":
    case "transferred":
      return reason;
    case "max-hold":
      return "max_hold";
    case "stolen":
    case "engine-unreachable":
    case "suspended":
      return "lost";
  }
}

function releaseOutcome(released: boolean | undefined): string {
  if (released === undefined) {
    return "error";
  }
  return released ? "released" : "not_held";
}

/** A name of few values: the code of a `LockError`, or the class of another error. */
function errorType(error: unknown): string {
  if (isLockError(error)) {
    return error.code;
  }
  return error instanceof Error ? error.name : "other";
}

function on<Message>(channel: string, listener: (message: Message) => void): readonly [string, Listener] {
  return [channel, listener as Listener];
}
