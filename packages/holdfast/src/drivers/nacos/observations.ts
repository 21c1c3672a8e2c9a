import type { Clock } from "../../runtime/clock.ts";
import { driftAllowanceMs } from "../../validity.ts";
import type { LockDocument } from "./document.ts";
import type { View } from "./documents.ts";

/** When a lock can be granted again. */
export interface Turn {
  /** How long the grant must stay unchanged until it is expired, ms; 0: there is none, or it has expired. */
  readonly remainingMs: number;
  /** How long the first waiter of the queue could have had the lock, ms. */
  readonly idleMs: number;
}

interface Seen {
  /** Of the grant, or of the end of the last one. */
  readonly version: string;
  readonly grantSince: number;
  readonly turn: string;
  readonly turnSince: number;
}

const maxObserved = 10_000;
/** A waiter keeps the first place of the queue for this long while the lock is free, ms. */
export const entryTtlMs = 4_000;

/**
 * How long this process has seen grants without an extension. After a TTL without an extension, a grant has certainly expired, whatever
 * the wall clocks of the servers show. Its removal replaces the content that was seen, so an extension in between keeps the lease.
 */
export class Observations {
  readonly #clock: Clock;
  readonly #maxClockDifferenceMs: number;
  readonly #seen = new Map<string, Seen>();

  constructor(clock: Clock, maxClockDifferenceMs: number) {
    this.#clock = clock;
    this.#maxClockDifferenceMs = maxClockDifferenceMs;
  }

  /** Notes a lock that was just read. */
  observe(view: View): Turn {
    const { grant, at } = view.document;
    const now = this.#clock.now();
    const { grantSince, turnSince } = this.#note(view.document, now);
    if (grant && !this.#isOld(view, grant.at, grant.ttlMs)) {
      const expiresAt = grantSince + grant.ttlMs + driftAllowanceMs(grant.ttlMs);
      return { remainingMs: Math.max(0, expiresAt - now), idleMs: now - Math.max(expiresAt, turnSince) };
    }
    return { remainingMs: 0, idleMs: this.#isOld(view, at, entryTtlMs) ? Infinity : now - turnSince };
  }

  /** Since when the lock has had its grant, and since when the first waiter could take the lock after it. */
  #note({ key, grant, queue, end }: LockDocument, now: number): Seen {
    const known = this.#seen.get(key);
    const version = grant === null ? end : grant.version;
    const turn = `${version} ${queue[0]?.token}`;
    const grantSince = known?.version === version ? known.grantSince : now;
    const turnSince = known?.turn === turn ? known.turnSince : now;
    const seen = { version, grantSince, turn, turnSince };
    this.#seen.delete(key);
    this.#seen.set(key, seen);
    if (this.#seen.size > maxObserved) {
      this.#seen.delete(this.#seen.keys().next().value as string);
    }
    return seen;
  }

  /**
   * Whether the wall clock of the server shows that a time limit has passed long ago. This frees the locks of crashed processes if all
   * requests come from processes that end before they have seen the lock for long enough.
   */
  #isOld({ readAt }: View, at: number | null, limitMs: number): boolean {
    return readAt !== undefined && at !== null && readAt - at > limitMs + this.#maxClockDifferenceMs;
  }
}
