import { LeaseLostError, WaitTimeoutError } from "holdfast";
import type { WireLease } from "holdfast/http";

import type { Connection } from "./connection.ts";
import type { LeaseIds } from "./lease-ids.ts";
import type { Leases } from "./leases.ts";
import type { AcquireCommand, Requester } from "./acquire-leases.ts";

/** What one named attempt has: a lease, or a request for one. */
interface Entry {
  /** Settles with the lease; rejects as the request did. */
  pending: Promise<WireLease> | undefined;
  lease: WireLease | undefined;
  /** When the lease is over unless it was renewed, on the scale of `performance.now()`. */
  endsAt: number;
  /** Requests whose answer is still on its way. */
  open: number;
  /** Whether a client has `lease`. */
  wasDelivered: boolean;
}

/** How many entries may stay behind until the next sweep. */
const minSweepSize = 64;

/**
 * The named attempts of this instance. A repeat has the lease of the first request while that is held; another instance does not know
 * of it, and is an ordinary contender.
 */
export class AttemptCache {
  readonly #leases: Leases;
  readonly #leaseIds: LeaseIds;
  readonly #entries = new Map<string, Entry>();
  #sweepAt = minSweepSize;

  constructor(leases: Leases, leaseIds: LeaseIds) {
    this.#leases = leases;
    this.#leaseIds = leaseIds;
  }

  /**
   * Rejects as {@link Leases.acquire} does.
   * @param name of the attempt, with all that it asks for
   */
  async acquire(
    name: string,
    command: AcquireCommand,
    requester: Requester,
    connection: Connection,
  ): Promise<WireLease> {
    const entry = this.#entryOf(name);
    entry.open += 1;
    try {
      const lease = await this.#acquire(entry, command, requester);
      connection.onEnd((isDelivered) => {
        this.#leaseEnded(name, entry, isDelivered ? lease : undefined);
      });
      return lease;
    } catch (error) {
      this.#leaseEnded(name, entry, undefined);
      throw error;
    }
  }

  async #acquire(entry: Entry, command: AcquireCommand, requester: Requester): Promise<WireLease> {
    const startedAt = performance.now();
    for (;;) {
      const existing = entry.lease && (await this.#renewed(entry, entry.lease, command.ttlMs));
      if (existing) {
        return existing;
      }
      const waitMs = Math.max(0, command.waitMs - (performance.now() - startedAt));
      const pending = entry.pending;
      if (!pending) {
        return this.#request(entry, { ...command, waitMs }, requester);
      }
      requester.onQueued();
      await settledWithin(pending, waitMs, requester.closed);
      if (entry.pending === pending) {
        throw new WaitTimeoutError(command.keys[0] as string, command.waitMs);
      }
    }
  }

  async #request(entry: Entry, command: AcquireCommand, requester: Requester): Promise<WireLease> {
    const pending = this.#leases.acquire(command, requester);
    entry.pending = pending;
    try {
      const lease = await pending;
      entry.wasDelivered = false;
      keep(entry, lease);
      return lease;
    } finally {
      entry.pending = undefined;
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
  #leaseEnded(name: string, entry: Entry, delivered: WireLease | undefined): void {
    entry.open -= 1;
    entry.wasDelivered ||= delivered !== undefined && delivered.fencingToken === entry.lease?.fencingToken;
    if (entry.open === 0 && !entry.wasDelivered && entry.lease) {
      this.#leases.releaseUndelivered(this.#leaseIds.read(entry.lease.leaseId));
      entry.lease = undefined;
    }
    if (entry.open === 0 && !entry.lease) {
      this.#deleteIfIdle(name, entry);
    }
  }

  #entryOf(name: string): Entry {
    this.#sweep();
    const entry = this.#entries.get(name) ?? {
      pending: undefined,
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
          this.#deleteIfIdle(name, entry);
        }
      }
      this.#sweepAt = Math.max(minSweepSize, 2 * this.#entries.size);
    }
  }

  #deleteIfIdle(name: string, entry: Entry): void {
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
function settledWithin(pending: Promise<unknown>, ms: number, signal: AbortSignal): Promise<void> {
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
    const timer = setTimeout(end, Math.min(ms, maxTimerMs));
    signal.addEventListener("abort", abort, { once: true });
    pending.then(end, end);
    if (signal.aborted) {
      abort();
    }
  });
}

const maxTimerMs = 2 ** 31 - 1;
