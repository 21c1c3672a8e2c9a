import type { Driver, ExtendResult } from "../driver.ts";
import type { Clock } from "../runtime/clock.ts";
import { TimerQueue, type Scheduled } from "../runtime/timer-queue.ts";
import { remainingValidityMs, type Validity } from "../validity.ts";
import type { LeaseSlot } from "./lease-slot.ts";
import type { ThreadLease } from "./messages.ts";

/** A lease without a renewal until this fraction of its TTL is left gets one from the thread. The other thread renews at two thirds. */
const lateFraction = 1 / 2;
const minRetryMs = 10;

/** The surroundings of the renewer. */
export interface RenewerHost {
  readonly clock: Clock;
  readonly engine: Pick<Driver, "extend" | "verify">;
  /** How far the monotonic clock of the process is ahead of `clock.now()`, ms. */
  readonly monotonicLeadMs: number;
  /** How long the event loop of the leases has been blocked, ms. */
  blockedMs(): number;
  readonly maxBlockedMs: number;
  /** The engine does not have a lease of the process, and has had none before. */
  unknownLease(key: string): void;
}

/**
 * Renews the leases that their own thread renews late, as long as that thread has not been blocked for longer than `maxBlockedMs`.
 * Both threads may send extensions of one grant, because an extension creates no grant and shortens none.
 *
 * The engine may be another one than that of the driver, for example by another prefix. So no lease is reported as lost before the engine
 * has had a lease of the process.
 */
export class ThreadRenewer {
  readonly #host: RenewerHost;
  readonly #queue: TimerQueue<WatchedSlot>;
  /** By block and index. */
  readonly #watched = new Map<string, WatchedSlot>();
  /** Whether the engine has had a lease of the process. */
  #isConfirmed = false;
  #isConfirming = false;

  constructor(host: RenewerHost) {
    this.#host = host;
    this.#queue = new TimerQueue(host.clock, (watched) => {
      this.#check(watched);
    });
  }

  get size(): number {
    return this.#watched.size;
  }

  /** Watches a lease until its slot shows its end. The former lease in the slot has ended. */
  add(lease: ThreadLease, times: LeaseSlot): void {
    const address = `${lease.block}:${lease.index}`;
    const former = this.#watched.get(address);
    if (former) {
      this.#queue.cancel(former);
    }
    const watched = new WatchedSlot(address, lease, times);
    this.#watched.set(address, watched);
    this.#check(watched);
    if (!this.#isConfirmed && !this.#isConfirming) {
      void this.#confirm(watched);
    }
  }

  /** Looks for a lease at the engine. */
  async #confirm({ lease: { key, token, fencingToken }, shared }: WatchedSlot): Promise<void> {
    this.#isConfirming = true;
    const verified = await this.#host.engine.verify(key, token, fencingToken).catch(() => undefined);
    this.#isConfirming = false;
    this.#isConfirmed ||= verified?.outcome === "valid";
    if (verified && !this.#isConfirmed && shared.times) {
      this.#host.unknownLease(key);
    }
  }

  #check(watched: WatchedSlot): void {
    const { clock, maxBlockedMs, monotonicLeadMs } = this.#host;
    const { ttlMs } = watched.lease;
    const { times } = watched.shared;
    const now = clock.now();
    const remainingMs = times
      ? Math.min(times.until - monotonicLeadMs - now, times.untilWall - clock.wall())
      : 0;
    if (!times || remainingMs <= 0) {
      this.#drop(watched);
      return;
    }
    const lateMs = ttlMs * lateFraction - remainingMs;
    if (lateMs < 0) {
      this.#queue.schedule(watched, now - lateMs);
      return;
    }
    const isEnding = times.endsAt - monotonicLeadMs <= now;
    if (!isEnding && !watched.isRenewing && this.#host.blockedMs() <= maxBlockedMs) {
      void this.#renew(watched);
    }
    this.#queue.schedule(watched, now + Math.max(minRetryMs, ttlMs / 12));
  }

  async #renew(watched: WatchedSlot): Promise<void> {
    const { key, token, fencingToken, ttlMs } = watched.lease;
    watched.isRenewing = true;
    const extension = await this.#host.engine
      .extend({ key, token, fencingToken, ttlMs, info: undefined })
      .catch((error: unknown): ExtendResult => ({ outcome: "unknown", error }));
    watched.isRenewing = false;
    if (extension.outcome === "extended") {
      this.#isConfirmed = true;
      this.#extend(watched.shared, extension.validity);
    } else if (extension.outcome === "lost" && this.#isConfirmed) {
      watched.shared.lose(extension.reason);
    } else if (extension.outcome === "lost") {
      this.#drop(watched);
      return;
    }
    if (this.#watched.get(watched.address) === watched && extension.outcome !== "unknown") {
      this.#check(watched);
    }
  }

  /** An earlier end never replaces a later one. The stricter clock decides. */
  #extend(shared: LeaseSlot, confirmed: Validity): void {
    const { clock, monotonicLeadMs } = this.#host;
    const { times } = shared;
    if (!times) {
      return;
    }
    const present = { until: times.until - monotonicLeadMs, untilWall: times.untilWall };
    if (remainingValidityMs(confirmed, clock) > remainingValidityMs(present, clock)) {
      shared.extend({ until: confirmed.until + monotonicLeadMs, untilWall: confirmed.untilWall });
    }
  }

  #drop(watched: WatchedSlot): void {
    this.#queue.cancel(watched);
    if (this.#watched.get(watched.address) === watched) {
      this.#watched.delete(watched.address);
    }
  }
}

class WatchedSlot implements Scheduled {
  dueAt = 0;
  slot = -1;
  isRenewing = false;
  readonly address: string;
  readonly lease: ThreadLease;
  readonly shared: LeaseSlot;

  constructor(address: string, lease: ThreadLease, shared: LeaseSlot) {
    this.address = address;
    this.lease = lease;
    this.shared = shared;
  }
}
