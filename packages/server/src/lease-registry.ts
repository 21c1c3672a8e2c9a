import type { LeaseParts } from "holdfast/http";

type Grant = LeaseParts["grants"][number];

/** How a lease ended, as far as this instance knows. */
export type LeaseEnd = "released" | "expired" | "lost" | "broken";

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
          this.leaseEnded(grant, "expired");
        }
      }
    }, sweepMs).unref();
  }

  track(grant: Grant, ttlMs: number, remainingMs: number): void {
    const now = performance.now();
    const entry = this.#entries.get(grant.token);
    if (entry) {
      entry.until = Math.max(entry.until, now + remainingMs);
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

  leaseEnded({ token }: Grant, end: LeaseEnd): void {
    this.tokenEnded(token, end);
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
