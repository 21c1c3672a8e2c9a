import { channel } from "node:diagnostics_channel";

import { isLockError, type ExtendResult, type LossReason } from "holdfast";
import type { LeaseParts, WireMode } from "holdfast/http";
import { Counter, Gauge, Histogram, Registry } from "prom-client";

import { ClientDisconnected } from "./connection.ts";
import { KeyGroups } from "./groups.ts";
import { LeaseTracker, type LeaseEnd } from "./lease-registry.ts";

type Grant = LeaseParts["grants"][number];

const seconds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600,
];
const fractions = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];

/** Of the tracing channel `holdfast:hold`. */
const holdEnds = "tracing:holdfast:hold:asyncEnd";

interface MetricsOptions {
  readonly engine: string;
  readonly groups: KeyGroups;
  /** The present number of waiters at this instance. */
  readonly waiters: () => number;
}

/** The progress of one acquisition. */
interface Acquiring {
  granted(queuedMs: number): void;
  failed(error: unknown): void;
}

/**
 * The metrics for Prometheus. A key is never a label. The label `lock_group` is a configured prefix, or the part before the first `:`.
 */
export class Metrics {
  readonly registry: Registry = new Registry();
  readonly #groups: KeyGroups;
  readonly #leaseTracker: LeaseTracker;
  readonly #acquire: Histogram;
  readonly #wait: Histogram;
  readonly #hold: Histogram;
  readonly #renew: Histogram;
  readonly #margin: Histogram;
  readonly #lost: Counter;
  readonly #release: Counter;
  readonly #fence: Counter;
  readonly #broken: Counter;
  readonly #overrun: Histogram;
  readonly #quorum: Histogram;
  readonly #votes: Counter;
  readonly #onVote = (message: unknown): void => {
    const { granted, nodes } = message as { granted: number; nodes: number };
    this.#quorum.observe(granted - (Math.floor(nodes / 2) + 1));
  };
  readonly #onHoldEnd = (message: unknown): void => {
    const { key, overrunMs = 0 } = message as { key: string; overrunMs?: number };
    if (overrunMs > 0) {
      this.#overrun.observe({ lock_group: this.#groups.of(key) }, overrunMs / 1000);
    }
  };

  constructor({ engine, groups, waiters }: MetricsOptions) {
    this.registry.setDefaultLabels({ lock_engine: engine });
    this.#groups = groups;
    this.#leaseTracker = new LeaseTracker((grant, heldMs, end) => {
      this.#ended(grant.key, heldMs, end);
    });
    this.#acquire = this.#histogram("lock_acquire_duration_seconds", "Time from the request to the response", seconds, ["lock_mode", "outcome"]); // prettier-ignore
    this.#wait = this.#histogram("lock_wait_duration_seconds", "Time of queued requests in the queue", seconds, ["outcome"]); // prettier-ignore
    this.#hold = this.#histogram("lock_hold_duration_seconds", "Time from the grant to its end", seconds, ["end"]); // prettier-ignore
    this.#renew = this.#histogram("lock_renew_duration_seconds", "Time of the engine for an extension", seconds, ["outcome"]); // prettier-ignore
    this.#margin = this.#histogram("lock_renew_margin_ratio", "Remaining part of the TTL at a renewal", fractions, []); // prettier-ignore
    this.#overrun = this.#histogram("lock_overrun_duration_seconds", "Time between the end of a grant and its detection, for locks held by a connection", seconds, []); // prettier-ignore
    this.#votes = new Counter({ name: "lock_quorum_votes_total", help: "Votes of the nodes in failed attempts", labelNames: ["server_address", "vote"], registers: [this.registry] }); // prettier-ignore
    this.#quorum = new Histogram({ name: "lock_quorum_margin_votes", help: "Votes above the majority; 0: one failure from loss", buckets: [0, 1, 2, 3, 4], registers: [this.registry] }); // prettier-ignore
    this.#lost = this.#counter("lock_lost_total", "Leases that ended without a release", ["reason"]);
    this.#release = this.#counter("lock_release_total", "Releases", ["outcome"]);
    this.#fence = this.#counter("lock_fence_rejected_total", "Checks that found a fencing token stale", []);
    this.#broken = this.#counter("lock_broken_total", "Grants that an operator broke", []);
    const leaseTracker = this.#leaseTracker;
    this.#gauge("lock_waiters", "Waiters at this instance", waiters);
    this.#gauge("lock_held", "Leases of this instance without a known end", () => leaseTracker.count);
    channel("holdfast:vote").subscribe(this.#onVote);
    channel(holdEnds).subscribe(this.#onHoldEnd);
  }

  acquiring({ keys, mode, waitMs }: { keys: readonly string[]; mode: WireMode; waitMs: number }): Acquiring {
    const startedAt = performance.now();
    const lock_group = this.#groups.of(keys[0] ?? "");
    const observe = (outcome: string, isQueued: boolean): void => {
      const took = (performance.now() - startedAt) / 1000;
      this.#acquire.observe({ lock_group, lock_mode: mode, outcome }, took);
      if (isQueued) {
        this.#wait.observe({ lock_group, outcome }, took);
      }
    };
    return {
      granted: (queuedMs) => observe("acquired", queuedMs > 0),
      failed: (error) => {
        const isHeld = isLockError(error, "wait-timeout");
        observe(isHeld && waitMs === 0 ? "held" : outcomeOf(error), isHeld && waitMs > 0);
        this.voted(error);
      },
    };
  }

  /** Counts a lease as held by its client, from its response or renewal on. */
  leaseHeld(grant: Grant, ttlMs: number, remainingMs: number): void {
    this.#leaseTracker.track(grant, ttlMs, remainingMs);
  }

  renewed(grant: Grant, ttlMs: number, extension: ExtendResult, tookMs: number): void {
    const { outcome } = extension;
    this.voted(outcome === "unknown" ? extension.error : undefined);
    const lock_group = this.#groups.of(grant.key);
    this.#renew.observe({ lock_group, outcome }, tookMs / 1000);
    const marginMs = this.#leaseTracker.remainingMs(grant);
    if (marginMs !== undefined) {
      this.#margin.observe({ lock_group }, Math.max(0, marginMs / ttlMs));
    }
    if (outcome === "lost") {
      this.#leaseTracker.leaseEnded(grant, "lost");
    }
  }

  /** Counts the votes of a failed majority attempt. After a success only the number of votes is known. */
  voted(error: unknown): void {
    for (const { node, vote } of isLockError(error, "quorum-not-reached") ? error.votes : []) {
      this.#votes.inc({ server_address: node, vote });
    }
  }

  notReleased({ key }: Grant): void {
    this.#release.inc({ lock_group: this.#groups.of(key), outcome: "error" });
  }

  released(grant: Grant, wasHeld: boolean): void {
    const lock_group = this.#groups.of(grant.key);
    this.#release.inc({ lock_group, outcome: wasHeld ? "released" : "not_held" });
    this.#leaseTracker.leaseEnded(grant, wasHeld ? "released" : "lost");
  }

  /** The engine has reported the end of a grant of this instance. */
  lost(token: string, reason: LossReason): void {
    this.#leaseTracker.tokenEnded(token, reason === "broken" ? "broken" : "lost");
  }

  fenceChecked(key: string, fence: string): void {
    if (fence === "stale") {
      this.#fence.inc({ lock_group: this.#groups.of(key) });
    }
  }

  broken(key: string): void {
    this.#broken.inc({ lock_group: this.#groups.of(key) });
  }

  close(): void {
    channel("holdfast:vote").unsubscribe(this.#onVote);
    channel(holdEnds).unsubscribe(this.#onHoldEnd);
    this.#leaseTracker.close();
  }

  #ended(key: string, heldMs: number, end: LeaseEnd): void {
    const lock_group = this.#groups.of(key);
    this.#hold.observe({ lock_group, end }, heldMs / 1000);
    if (end !== "released") {
      this.#lost.inc({ lock_group, reason: end });
    }
  }

  #histogram(name: string, help: string, buckets: number[], labels: string[]): Histogram {
    const labelNames = ["lock_group", ...labels];
    return new Histogram({ name, help, buckets, labelNames, registers: [this.registry] });
  }

  #counter(name: string, help: string, labels: string[]): Counter {
    return new Counter({ name, help, labelNames: ["lock_group", ...labels], registers: [this.registry] });
  }

  #gauge(name: string, help: string, value: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.registry],
      collect() {
        this.set(value());
      },
    });
  }
}

function outcomeOf(error: unknown): string {
  if (isLockError(error, "wait-timeout")) {
    return "wait_timeout";
  } else if (isLockError(error, "quorum-not-reached")) {
    return "quorum_failed";
  }
  return error instanceof ClientDisconnected ? "aborted" : "error";
}
