import { channel } from "node:diagnostics_channel";

import { isLockError, type Diagnostics, type HoldTrace, type LossReason } from "holdfast";
import type { LeaseParts, WireMode } from "holdfast/http";
import {
  holdEnd,
  KeyGroups,
  recordFailedVotes,
  recordVote,
  RegistryRecorder,
  SeriesCache,
} from "holdfast/prometheus";
import { Gauge, Registry } from "prom-client";

import { ClientDisconnected } from "./connection.ts";
import type { Extension } from "./engine.ts";
import { LeaseTracker, type LeaseEnd } from "./lease-registry.ts";

type Grant = LeaseParts["grants"][number];

/** Of the tracing channel `holdfast:hold`. */
const holdEnds = "tracing:holdfast:hold:asyncEnd";

interface MetricsOptions {
  readonly engine: string;
  readonly guarantee: string;
  /** The prefixes of keys that are groups. */
  readonly groups: readonly string[];
  /** The present number of waiters at this instance. */
  readonly waiters: () => number;
  /** The present number of open event streams. */
  readonly streams: () => number;
}

/** The progress of one acquisition. */
interface Acquiring {
  /** The request waits in the queue of the engine. */
  queued(): void;
  granted(): void;
  failed(error: unknown): void;
}

const kinds: Readonly<Record<WireMode, string>> = {
  exclusive: "mutex",
  read: "read-write",
  write: "read-write",
  semaphore: "semaphore",
};

/**
 * The metrics for Prometheus: the instruments of `holdfast/prometheus`, for the leases of clients, and `holdfast_server_*`. A key is never
 * a label. The label `group` is a configured prefix, or the part before the first `:`.
 */
export class Metrics {
  readonly registry: Registry = new Registry();
  readonly recorder: RegistryRecorder;
  readonly #values: SeriesCache;
  readonly #groups: KeyGroups;
  readonly #leaseTracker: LeaseTracker;
  /** Called at the end of each lease that this instance knows. */
  onLeaseEnded: (grant: Grant, end: LeaseEnd) => void = () => undefined;
  readonly #onVote = (message: unknown): void => {
    recordVote(this.#values, message as Diagnostics["vote"]);
  };
  readonly #onHoldEnd = (message: unknown): void => {
    const { key, overrunMs = 0 } = message as HoldTrace;
    if (overrunMs > 0) {
      this.#values.add("holdfast.overrun.duration", overrunMs / 1000, this.#groups.of(key));
    }
  };

  constructor({ engine, guarantee, groups, waiters, streams }: MetricsOptions) {
    this.#groups = new KeyGroups(groups);
    this.recorder = new RegistryRecorder(this.registry);
    this.recorder.startAtZero(this.#groups.known);
    this.#values = new SeriesCache(this.recorder);
    this.#leaseTracker = new LeaseTracker({
      begun: (grant) => this.#changeHeld(grant, 1),
      ended: (grant, heldMs, end) => {
        this.#ended(grant, heldMs, end);
        this.onLeaseEnded(grant, end);
      },
    });
    this.#gauge("holdfast_server_open_waits", "Requests that wait at this instance", waiters);
    this.#gauge("holdfast_server_streams", "Open event streams of this instance", streams);
    const labelNames = ["engine", "guarantee"];
    const registers = [this.registry];
    new Gauge({ name: "holdfast_server_info", help: "1, with the engine in its labels", labelNames, registers }) // prettier-ignore
      .set({ engine, guarantee }, 1);
    channel("holdfast:vote").subscribe(this.#onVote);
    channel(holdEnds).subscribe(this.#onHoldEnd);
  }

  acquiring({ keys, mode, waitMs }: { keys: readonly string[]; mode: WireMode; waitMs: number }): Acquiring {
    const startedAt = performance.now();
    const group = this.#groups.of(keys[0] ?? "");
    let isQueued = false;
    const changeWaiting = (change: 1 | -1): void => {
      this.#values.add("holdfast.waiting", change, group, "engine");
    };
    const ended = (outcome: string, ...failure: readonly string[]): void => {
      const took = (performance.now() - startedAt) / 1000;
      this.#values.add("holdfast.acquire.duration", took, group, outcome, ...failure);
      if (isQueued) {
        changeWaiting(-1);
        this.#values.add("holdfast.wait.duration", took, group, outcome);
      }
    };
    return {
      queued: () => {
        if (!isQueued) {
          isQueued = true;
          changeWaiting(1);
        }
      },
      granted: () => {
        ended("acquired");
        this.#values.add(
          "holdfast.grants",
          keys.length,
          group,
          kinds[mode],
          mode,
          isQueued ? "message" : "reply",
        );
      },
      failed: (error) => {
        const isHeld = isLockError(error, "wait-timeout") && waitMs === 0;
        const outcome = isHeld ? "held" : outcomeOf(error);
        ended(outcome, ...(failures.has(outcome) ? [isLockError(error) ? error.code : "other"] : []));
        recordFailedVotes(this.#values, error);
      },
    };
  }

  /** How long ago a lease was granted or renewed, ms; undefined: this instance does not know it. */
  sinceRenewalMs(grant: Grant): number | undefined {
    return this.#leaseTracker.sinceRenewalMs(grant);
  }

  /** Whether this instance knows that the grant is held. */
  isKnown(grant: Grant): boolean {
    return this.#leaseTracker.isKnown(grant);
  }

  /**
   * Counts a lease as held by its client, from its response or renewal on.
   * @returns the grant as it was first known
   */
  leaseHeld(grant: Grant, ttlMs: number, remainingMs: number): Grant {
    return this.#leaseTracker.track(grant, ttlMs, remainingMs);
  }

  renewed(grant: Grant, ttlMs: number, extension: Extension, tookMs: number): void {
    const { outcome } = extension;
    recordFailedVotes(this.#values, outcome === "unknown" ? extension.error : undefined);
    const group = this.#groups.of(grant.key);
    const result = outcome === "extended" ? "renewed" : outcome;
    this.#values.add("holdfast.renew.duration", tookMs / 1000, group, result);
    const marginMs = this.#leaseTracker.remainingMs(grant);
    if (marginMs !== undefined) {
      this.#values.add("holdfast.renew.margin", Math.max(0, marginMs / ttlMs), group);
    }
    if (outcome === "lost") {
      this.#leaseTracker.leaseEnded(grant, extension.reason);
    } else if (outcome === "extended") {
      this.#leaseTracker.renewed(grant);
    }
  }

  notReleased({ key }: Grant): void {
    this.#values.add("holdfast.releases", 1, this.#groups.of(key), "error");
  }

  /** @param loss why the grant had ended before the release; undefined: it was held until then */
  released(grant: Grant, loss: LossReason | undefined): void {
    const wasHeld = loss === undefined;
    this.#values.add("holdfast.releases", 1, this.#groups.of(grant.key), wasHeld ? "released" : "not_held");
    this.#leaseTracker.leaseEnded(grant, loss ?? "released");
  }

  /** The engine has reported the end of a grant of this instance. */
  lost(token: string, reason: LossReason): void {
    this.#leaseTracker.tokenEnded(token, reason);
  }

  /** The engine no longer has a grant, which another instance has released. */
  endedElsewhere(grant: Pick<Grant, "key" | "fencingToken">): void {
    this.#leaseTracker.endedElsewhere(grant);
  }

  fenceChecked(key: string, fence: "current" | "stale" | "unknown"): void {
    this.#values.add("holdfast.fence.checks", 1, this.#groups.of(key), fence);
  }

  broken(key: string): void {
    this.#values.add("holdfast.breaks", 1, this.#groups.of(key));
  }

  close(): void {
    channel("holdfast:vote").unsubscribe(this.#onVote);
    channel(holdEnds).unsubscribe(this.#onHoldEnd);
    this.#leaseTracker.close();
  }

  #changeHeld({ key, kind }: Grant, change: 1 | -1): void {
    this.#values.add("holdfast.held", change, this.#groups.of(key), kind ?? "mutex");
  }

  #ended(grant: Grant, heldMs: number, end: LeaseEnd): void {
    const group = this.#groups.of(grant.key);
    const reason = end === "unrenewed" ? "expired" : end;
    this.#changeHeld(grant, -1);
    this.#values.add("holdfast.hold.duration", heldMs / 1000, group, holdEnd(reason));
    if (reason !== "released") {
      this.#values.add("holdfast.lost", 1, group, reason);
    }
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

/** The outcomes with an `error_type`. */
const failures: ReadonlySet<string> = new Set(["quorum_failed", "unavailable", "error"]);

function outcomeOf(error: unknown): string {
  if (isLockError(error, "wait-timeout")) {
    return "wait_timeout";
  } else if (isLockError(error, "quorum-not-reached")) {
    return "quorum_failed";
  } else if (isLockError(error, "engine-unavailable") || isLockError(error, "replicas-not-reached")) {
    return "unavailable";
  }
  return error instanceof ClientDisconnected ? "aborted" : "error";
}
