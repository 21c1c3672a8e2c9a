import type { LossReason } from "holdfast";
import type { LeaseParts } from "holdfast/http";

type Grant = LeaseParts["grants"][number];

/** How a lease ended. `unrenewed`: it expired as far as this instance knows, but another instance may have renewed it. */
export type LeaseEnd = LossReason | "unrenewed";

interface Entry {
  readonly grant: Grant;
  readonly since: number;
  renewedAt: number;
  until: number;
}

/** Receives the beginnings and the ends of leases. */
interface LeaseListener {
  begun(grant: Grant): void;
  ended(grant: Grant, heldMs: number, end: LeaseEnd): void;
}

const sweepMs = 1_000;

/** The leases of this instance, for metrics only. A lease that another instance releases is counted as expired. */
export class LeaseTracker {
  readonly #entries = new Map<string, Entry>();
  /** The token of each grant, by its fencing token and key. */
  readonly #tokens = new Map<string, string>();
  readonly #listener: LeaseListener;
  readonly #sweep: NodeJS.Timeout;

  constructor(listener: LeaseListener) {
    this.#listener = listener;
    this.#sweep = setInterval(() => {
      const now = performance.now();
      for (const { grant, until } of this.#entries.values()) {
        if (until <= now) {
          this.leaseEnded(grant, "unrenewed");
        }
      }
    }, sweepMs).unref();
  }

  /** @returns the grant as it was first known, because a client may alter all but the token of an unsigned lease id */
  track(grant: Grant, ttlMs: number, remainingMs: number): Grant {
    const now = performance.now();
    const entry = this.#entries.get(grant.token);
    if (entry) {
      entry.until = Math.max(entry.until, now + remainingMs);
      return entry.grant;
    } else {
      const since = now - Math.max(0, ttlMs - remainingMs);
      this.#entries.set(grant.token, {
        grant,
        since,
        renewedAt: since,
        until: now + remainingMs,
      });
      this.#tokens.set(idOf(grant), grant.token);
      this.#listener.begun(grant);
      return grant;
    }
  }

  /** The engine has extended a grant. */
  renewed({ token }: Grant): void {
    const entry = this.#entries.get(token);
    if (entry) {
      entry.renewedAt = performance.now();
    }
  }

  /** The remaining validity, as far as this instance knows. */
  remainingMs({ token }: Grant): number | undefined {
    const entry = this.#entries.get(token);
    return entry && entry.until - performance.now();
  }

  /** How long ago the grant or its last renewal was, ms; undefined: this instance does not know the lease. */
  sinceRenewalMs({ token }: Grant): number | undefined {
    const entry = this.#entries.get(token);
    return entry && performance.now() - entry.renewedAt;
  }

  /** Whether this instance knows the grant by exactly these data. */
  isKnown(grant: Grant): boolean {
    const entry = this.#entries.get(grant.token);
    return entry !== undefined && idOf(entry.grant) === idOf(grant);
  }

  /** A lease id with a wrong key or fencing token says nothing about its token. */
  leaseEnded(grant: Grant, end: LeaseEnd): void {
    if (this.isKnown(grant)) {
      this.tokenEnded(grant.token, end);
    }
  }

  tokenEnded(token: string, end: LeaseEnd): void {
    const entry = this.#entries.get(token);
    if (entry && this.#entries.delete(token)) {
      this.#tokens.delete(idOf(entry.grant));
      this.#listener.ended(entry.grant, performance.now() - entry.since, end);
    }
  }

  /** Another instance has ended a grant. */
  endedElsewhere(grant: Pick<Grant, "key" | "fencingToken">): void {
    this.tokenEnded(this.#tokens.get(idOf(grant)) ?? "", "released");
  }

  close(): void {
    clearInterval(this.#sweep);
  }
}

function idOf({ key, fencingToken }: Pick<Grant, "key" | "fencingToken">): string {
  return `${fencingToken} ${key}`;
}
