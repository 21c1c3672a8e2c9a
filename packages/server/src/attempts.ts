import { LeaseLostError, WaitTimeoutError } from "holdfast";
import type { WireLease } from "holdfast/http";

import type { Connection } from "./connection.ts";
import type { LeaseIds } from "./lease-ids.ts";
import type { Leases } from "./leases.ts";
import type { Ask, Asker } from "./acquire-leases.ts";

/** What one named attempt has: a lease, or a request for one. */
interface Entry {
  /** Settles with the lease; rejects as the request did. */
  asked: Promise<WireLease> | undefined;
  lease: WireLease | undefined;
  /** When the lease is over unless it was renewed, on the scale of `performance.now()`. */
  endsAt: number;
  /** Requests whose answer is still on its way. */
  open: number;
  /** Whether a client has `lease`. */
  wasDelivered: boolean;
}

/** How many entries may stay behind until the next sweep. */
const fewEntries = 64;

/**
 * The named attempts of this instance. A repeat has the lease of the first request while that is held; another instance does not know
 * of it, and is an ordinary contender.
 */
export class Attempts {
  readonly #leases: Leases;
  readonly #leaseIds: LeaseIds;
  readonly #entries = new Map<string, Entry>();
  #sweepAt = fewEntries;

  constructor(leases: Leases, leaseIds: LeaseIds) {
    this.#leases = leases;
    this.#leaseIds = leaseIds;
  }

  /**
   * Rejects as {@link Leases.acquire} does.
   * @param name of the attempt, with all that it asks for
   */
  async acquire(name: string, ask: Ask, asker: Asker, connection: Connection): Promise<WireLease> {
    const entry = this.#entryOf(name);
    entry.open += 1;
    try {
      const lease = await this.#acquire(entry, ask, asker);
      connection.atEnd((isDelivered) => {
        this.#ended(name, entry, isDelivered ? lease : undefined);
      });
      return lease;
    } catch (error) {
      this.#ended(name, entry, undefined);
      throw error;
    }
  }

  async #acquire(entry: Entry, ask: Ask, asker: Asker): Promise<WireLease> {
    const begun = performance.now();
    for (;;) {
      const known = entry.lease && (await this.#renewed(entry, entry.lease, ask.ttlMs));
      if (known) {
        return known;
      }
      const waitMs = Math.max(0, ask.waitMs - (performance.now() - begun));
      const asked = entry.asked;
      if (!asked) {
        return this.#ask(entry, { ...ask, waitMs }, asker);
      }
      asker.waiting();
      await settledWithin(asked, waitMs, asker.over);
      if (entry.asked === asked) {
        throw new WaitTimeoutError(ask.keys[0] as string, ask.waitMs);
      }
    }
  }

  async #ask(entry: Entry, ask: Ask, asker: Asker): Promise<WireLease> {
    const asked = this.#leases.acquire(ask, asker);
    entry.asked = asked;
    try {
      const lease = await asked;
      entry.wasDelivered = false;
      keep(entry, lease);
      return lease;
    } finally {
      entry.asked = undefined;
    }
  }

  /** @returns undefined where it is lost */
  async #renewed(entry: Entry, lease: WireLease, ttlMs: number): Promise<WireLease | undefined> {
    try {
      const renewed = await this.#leases.renew(this.#leaseIds.read(lease.leaseId), ttlMs);
      keep(entry, renewed);
      return renewed;
    } catch (error) {
      if (!(error instanceof LeaseLostError)) {
        throw error;
      }
      entry.lease = entry.lease === lease ? undefined : entry.lease;
      return undefined;
    }
  }

  /** A lease that no client has is given back, once no repeat waits for it. */
  #ended(name: string, entry: Entry, delivered: WireLease | undefined): void {
    entry.open -= 1;
    entry.wasDelivered ||= delivered !== undefined && delivered.fencingToken === entry.lease?.fencingToken;
    if (entry.open === 0 && !entry.wasDelivered && entry.lease) {
      this.#leases.giveBack(this.#leaseIds.read(entry.lease.leaseId));
      entry.lease = undefined;
    }
    if (entry.open === 0 && !entry.lease) {
      this.#forget(name, entry);
    }
  }

  #entryOf(name: string): Entry {
    this.#sweep();
    const entry = this.#entries.get(name) ?? {
      asked: undefined,
      lease: undefined,
      endsAt: 0,
      open: 0,
      wasDelivered: false,
    };
    this.#entries.set(name, entry);
    return entry;
  }

  /** A lease may be renewed past us: a repeat asks the engine, and until then its entry is kept for one more TTL. */
  #sweep(): void {
    if (this.#entries.size >= this.#sweepAt) {
      const now = performance.now();
      for (const [name, entry] of this.#entries) {
        if (entry.open === 0 && entry.endsAt <= now) {
          this.#forget(name, entry);
        }
      }
      this.#sweepAt = Math.max(fewEntries, 2 * this.#entries.size);
    }
  }

  #forget(name: string, entry: Entry): void {
    if (this.#entries.get(name) === entry) {
      this.#entries.delete(name);
    }
  }
}

function keep(entry: Entry, lease: WireLease): void {
  entry.lease = lease;
  entry.endsAt = performance.now() + 2 * lease.ttlMs;
}

/** Waits until it is settled, or the time is over; rejects with the signal's reason. */
function settledWithin(asked: Promise<unknown>, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = (settle: () => void): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      settle();
    };
    const abort = (): void => {
      done(() => {
        reject(signal.reason as Error);
      });
    };
    const end = (): void => {
      done(resolve);
    };
    const timer = setTimeout(end, Math.min(ms, longestTimerMs));
    signal.addEventListener("abort", abort, { once: true });
    asked.then(end, end);
    if (signal.aborted) {
      abort();
    }
  });
}

const longestTimerMs = 2 ** 31 - 1;
