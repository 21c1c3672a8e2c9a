import { isLockError, WaitTimeoutError } from "holdfast";
import type { WireLease } from "holdfast/http";

import type { Connection } from "./connection.ts";
import type { LeaseIds } from "./lease-ids.ts";
import type { Leases } from "./leases.ts";
import type { AcquireCommand, Requester } from "./acquire-leases.ts";
import type { WaitLimits } from "./waits.ts";

/** The state of one named attempt: a lease, or a request for one. */
interface Entry {
  /** Settles with the lease; rejects as the request did. */
  pending: Promise<WireLease> | undefined;
  lease: WireLease | undefined;
  /** The end of the lease without a renewal, on the scale of `performance.now()`. */
  endsAt: number;
  /** Requests without a complete response. */
  open: number;
  /** Whether a client has received `lease`. */
  wasDelivered: boolean;
}

/** The limit of entries. Beyond it the oldest without an open request is forgotten, and its repeat is an ordinary contender. */
const maxEntries = 100_000;
/** The number of entries that starts the first sweep. */
const minSweepSize = 64;

/**
 * The named attempts of this instance. A repeat gets the lease of the first request while that lease is held. A repeat at another
 * instance is an ordinary contender, because that instance does not know the attempt.
 */
export class AttemptCache {
  readonly #leases: Leases;
  readonly #leaseIds: LeaseIds;
  readonly #waitLimits: WaitLimits;
  readonly #entries = new Map<string, Entry>();
  /** The attempts of leases, by the token of their first grant. */
  readonly #byToken = new Map<string, { readonly name: string; readonly entry: Entry }>();
  #sweepAt = minSweepSize;

  constructor(leases: Leases, leaseIds: LeaseIds, waitLimits: WaitLimits) {
    this.#leases = leases;
    this.#leaseIds = leaseIds;
    this.#waitLimits = waitLimits;
  }

  /**
   * Rejects as {@link Leases.acquire} does.
   * @param name the attempt's name with all parameters of its request
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
      const lease = await this.#acquire(name, entry, command, requester);
      connection.onEnd((isDelivered) => {
        this.#leaseEnded(name, entry, isDelivered ? lease : undefined);
      });
      return lease;
    } catch (error) {
      this.#leaseEnded(name, entry, undefined);
      throw error;
    }
  }

  /** A grant has been released, broken or lost, so that a repeat of its attempt is a new request. */
  grantEnded(token: string): void {
    const attempt = this.#byToken.get(token);
    if (attempt !== undefined) {
      const { name, entry } = attempt;
      this.#setLease(name, entry, undefined);
      if (entry.open === 0) {
        this.#deleteIfIdle(name, entry);
      }
    }
  }

  async #acquire(
    name: string,
    entry: Entry,
    command: AcquireCommand,
    requester: Requester,
  ): Promise<WireLease> {
    const startedAt = performance.now();
    for (;;) {
      const existing = entry.lease && (await this.#renewed(name, entry, entry.lease, command));
      if (existing) {
        return existing;
      }
      const waitMs = Math.max(0, command.waitMs - (performance.now() - startedAt));
      const pending = entry.pending;
      if (!pending) {
        return this.#request(name, entry, { ...command, waitMs }, requester);
      }
      const done = this.#waitLimits.count(command.keys[0] as string, command.quota);
      try {
        requester.onQueued();
        await settledWithin(pending, waitMs, requester.closed);
      } finally {
        done();
      }
      if (entry.pending === pending) {
        throw new WaitTimeoutError(command.keys[0] as string, command.waitMs);
      }
    }
  }

  async #request(
    name: string,
    entry: Entry,
    command: AcquireCommand,
    requester: Requester,
  ): Promise<WireLease> {
    const pending = this.#leases.acquire(command, requester);
    entry.pending = pending;
    try {
      const lease = await pending;
      entry.wasDelivered = false;
      this.#setLease(name, entry, lease);
      return lease;
    } finally {
      entry.pending = undefined;
    }
  }

  /** @returns undefined if the lease is lost */
  async #renewed(
    name: string,
    entry: Entry,
    lease: WireLease,
    { ttlMs, quota }: AcquireCommand,
  ): Promise<WireLease | undefined> {
    try {
      const renewed = await this.#leases.renew(this.#leaseIds.read(lease.leaseId), ttlMs, quota);
      this.#setLease(name, entry, renewed);
      return renewed;
    } catch (error) {
      if (!isLockError(error, "lease-lost")) {
        throw error;
      }
      if (entry.lease === lease) {
        this.#setLease(name, entry, undefined);
      }
      return undefined;
    }
  }

  /** Releases a lease that no client has received, once no repeat waits for that lease. */
  #leaseEnded(name: string, entry: Entry, delivered: WireLease | undefined): void {
    entry.open -= 1;
    entry.wasDelivered ||= delivered !== undefined && delivered.fencingToken === entry.lease?.fencingToken;
    if (entry.open === 0 && !entry.wasDelivered && entry.lease) {
      this.#leases.releaseUndelivered(this.#leaseIds.read(entry.lease.leaseId));
      this.#setLease(name, entry, undefined);
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
    if (this.#entries.size > maxEntries) {
      this.#forgetOldest();
    }
    return entry;
  }

  #setLease(name: string, entry: Entry, lease: WireLease | undefined): void {
    if (entry.lease) {
      this.#byToken.delete(this.#tokenOf(entry.lease));
    }
    entry.lease = lease;
    if (lease) {
      entry.endsAt = performance.now() + 2 * lease.ttlMs;
      this.#byToken.set(this.#tokenOf(lease), { name, entry });
    }
  }

  #tokenOf({ leaseId }: WireLease): string {
    return this.#leaseIds.read(leaseId).grants[0]?.token ?? "";
  }

  #forgetOldest(): void {
    for (const [name, entry] of this.#entries) {
      if (entry.open === 0) {
        this.#deleteIfIdle(name, entry);
        return;
      }
    }
  }

  /** Removes old entries. Another instance may have renewed a lease, so an entry stays for one more TTL, and a repeat asks the engine. */
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
      this.#setLease(name, entry, undefined);
      this.#entries.delete(name);
    }
  }
}

/** Resolves when `pending` is settled or `ms` have passed. Rejects with the signal's reason. */
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
