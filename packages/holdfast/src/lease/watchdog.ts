import type { Driver, ExtendResult, Grant } from "../driver.ts";
import { type Clock, type Instant, instantNow } from "../runtime/clock.ts";
import { type LeaseFacts, publish } from "../diagnostics.ts";
import type { LossReason } from "../errors.ts";
import { TimerLateness } from "../runtime/timer-lateness.ts";
import { jittered, type Random } from "../runtime/random.ts";
import { type Scheduled, TimerQueue } from "../runtime/timer-queue.ts";
import { extendValidity, type Validity, validityEnd, wasSuspended } from "../validity.ts";

/** A renewed lease, as a {@link RenewalBackup} needs it. */
export interface BackedLease {
  readonly key: string;
  readonly grant: Grant;
  readonly fencingToken: bigint;
  readonly ttlMs: number;
  /** The end of `maxHoldMs`, on the scale of `clock.now()`. */
  readonly endsAt: number;
}

/** Renews leases while the event loop of this thread is blocked. */
export interface RenewalBackup {
  /** Resolves when the backup is ready, or will not be ready soon. New leases wait for it. Undefined afterwards. */
  readonly starting: Promise<void> | undefined;
  /** Starts the renewals of a lease. The validity of its grant then counts the renewals of the backup, without the event loop. */
  add(lease: BackedLease): void;
  /** The end of the lease has changed. */
  update(lease: BackedLease): void;
  /** Ends the renewals of a lease. A request that is under way may still extend the grant, and never creates one. */
  remove(lease: BackedLease): void;
  close(): Promise<void>;
}

/** Starts a {@link RenewalBackup}: `watchdogThread` of `holdfast/watchdog-thread`. */
export interface RenewalBackupStarter {
  /** Called by `createLocks`. @throws {TypeError} the driver has an injected clock */
  start(driver: Driver): RenewalBackup;
}

/** The parts of a lease that the watchdog needs. */
export interface Renewable extends BackedLease {
  readonly validity: Validity;
  /** Whether the watchdog renews the lease. Otherwise the watchdog only declares its end. */
  readonly needsRenewal: boolean;
  /** The grant is a claim, so its first renewal is due at once. */
  readonly isClaim: boolean;
  /** When the engine is to learn that the lease is handed over no more, on the scale of `clock.now()`; Infinity: it need not. */
  readonly reportAt: number;
  /** Whether the caller still refers to the handle. */
  isLeaseReferenced(): boolean;
  /** Requests another TTL from the engine. Never rejects. */
  renew(): Promise<ExtendResult>;
  /** The engine has extended the claim. */
  claimConfirmed(): void;
  markLost(reason: LossReason, cause?: unknown): void;
  /** The lease, as its events name it. */
  facts(): LeaseFacts;
  reportLeak(): void;
}

const clockCheckMs = 1_000;
const suspendedMs = 50;

/** The shortest delay between a grant and the first renewal. A lease that ends within it costs no renewal. */
const minRenewalDelayMs = 5;

/** How much earlier than due a renewal may be sent together with another one: 5 % of the TTL, and at most this time. */
const maxGroupLeadMs = 100;

/**
 * Renews all leases of a `Locks` with one timer, and declares the loss of a lease before its validity ends, also during a renewal.
 * Because timers of this process may run late, the deadline is earlier by their recent lateness.
 * A renewal is sent when a third of the TTL has passed, or slightly earlier with one that is due, because one call for many renewals
 * costs little more than one. A failed renewal is repeated with jittered backoff until the deadline.
 * A renewal without a reply is repeated after another third of the TTL, because many repeats would keep a slow server slow.
 * The first reply counts: `renewed` extends the validity from the sending of its request, and `lost` ends the lease at once.
 */
export class Watchdog {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #lateness: TimerLateness;
  readonly #queue: TimerQueue<WatchedLease | ClockJumpDetector>;
  readonly #clockJumps: ClockJumpDetector;
  readonly #backup: RenewalBackup | undefined;

  constructor(clock: Clock, random: Random, backup?: RenewalBackup) {
    this.#clock = clock;
    this.#random = random;
    this.#backup = backup;
    this.#lateness = new TimerLateness(clock);
    this.#queue = new TimerQueue(
      clock,
      (item) => {
        this.#lateness.record(item.dueAt);
        if (item instanceof WatchedLease) {
          this.#wake(item);
        } else {
          this.#checkClocks();
        }
      },
      false,
      (item) => item.leadMs,
    );
    this.#clockJumps = new ClockJumpDetector(clock);
  }

  /** Starts to watch a lease, until {@link unwatch} is called with the result. */
  watch(target: Renewable): WatchedLease {
    if (this.#queue.size === 0) {
      this.#queue.schedule(this.#clockJumps, this.#clock.now() + clockCheckMs);
    }
    const watched = new WatchedLease(target);
    if (target.needsRenewal) {
      this.#backup?.add(target);
    }
    const at = instantNow(this.#clock);
    const remainingMs = validityEnd(target.validity, at) - at.now; // small after a late adoption, so the delay is a fraction of it
    const earliest = at.now + Math.min(minRenewalDelayMs, remainingMs / 20);
    watched.renewAt = Math.max(this.#renewalTime(target, at), earliest);
    this.#schedule(watched, at);
    return watched;
  }

  unwatch(watched: WatchedLease): void {
    this.#backup?.remove(watched.target);
    watched.isEnded = true;
    this.#queue.cancel(watched);
    if (this.#queue.size === 1) {
      this.#queue.cancel(this.#clockJumps);
    }
  }

  /** The validity, the end or the renewal of the lease has changed. */
  reschedule(watched: WatchedLease): void {
    const { target } = watched;
    if (!watched.isEnded) {
      if (target.needsRenewal) {
        this.#backup?.update(target);
      } else {
        this.#backup?.remove(target);
      }
      const at = instantNow(this.#clock);
      watched.renewAt = this.#renewalTime(target, at);
      this.#schedule(watched, at);
    }
  }

  /** The engine replies again, so failed renewals are repeated at once. */
  engineRecovered(): void {
    for (const item of Array.from(this.#queue.items())) {
      if (item instanceof WatchedLease && item.lastError !== undefined) {
        item.renewAt = this.#clock.now();
        this.#schedule(item);
      }
    }
    this.#queue.wakeDue();
  }

  targets(): Renewable[] {
    return this.#queue.items().flatMap((item) => (item instanceof WatchedLease ? [item.target] : []));
  }

  #wake(watched: WatchedLease): void {
    const { target } = watched;
    const at = instantNow(this.#clock);
    const { now } = at;
    if (this.#lossDeadline(target, at) <= now) {
      this.#end(watched, this.#lossReason(watched));
    } else if (now >= target.endsAt) {
      this.#end(watched, "max-hold");
    } else {
      if (target.needsRenewal && now >= watched.renewAt - watched.leadMs) {
        this.#tryRenewal(watched, at);
      }
      this.#schedule(watched);
    }
  }

  #tryRenewal(watched: WatchedLease, at: Instant): void {
    const { target } = watched;
    const { now } = at;
    const dueAt = this.#renewalTime(target, at);
    if (dueAt > now + watched.leadMs) {
      watched.renewAt = dueAt; // extended since, by its owner or by an earlier lease on the same grant
      return;
    }
    if (!target.isLeaseReferenced()) {
      this.#backup?.remove(target);
      target.reportLeak();
      return;
    }
    watched.attempts += 1;
    watched.renewAt = now + target.ttlMs / 3;
    const marginMs = validityEnd(target.validity, at) - now;
    if (marginMs < target.ttlMs / 3) {
      publish("late-renewal", () => ({ ...target.facts(), lateMs: now - dueAt, marginMs }));
    }
    void target.renew().then((extension) => this.#renewalAnswered(watched, extension));
  }

  #renewalAnswered(watched: WatchedLease, extension: ExtendResult): void {
    const { target } = watched;
    switch (extension.outcome) {
      case "extended":
        // The validity belongs to the grant, also if the grant was handed over during the request.
        extendValidity(target.validity, extension.validity, this.#clock);
        watched.attempts = 0;
        watched.lastError = undefined;
        break;
      case "lost":
        if (!watched.isEnded) {
          this.#end(watched, extension.reason);
        }
        return;
      case "unknown":
        watched.lastError = extension.error;
        watched.renewAt = this.#clock.now() + this.#backoffMs(watched);
        break;
    }
    if (watched.isEnded) {
      return;
    }
    const at = instantNow(this.#clock);
    if (this.#lossDeadline(target, at) <= at.now) {
      this.#end(watched, this.#lossReason(watched)); // the process was suspended, and its timers run after the replies
    } else if (extension.outcome === "extended") {
      target.claimConfirmed();
      this.reschedule(watched);
    } else {
      this.#schedule(watched);
    }
  }

  #backoffMs({ target: { ttlMs }, attempts }: WatchedLease): number {
    const longestMs = Math.min(ttlMs / 6, Math.max(10, (ttlMs / 30) * 2 ** (attempts - 1)));
    return jittered(this.#random, longestMs / 1.5, 0.5);
  }

  #end(watched: WatchedLease, reason: LossReason): void {
    this.unwatch(watched);
    watched.target.markLost(reason, reason === "engine-unreachable" ? causeOf(watched) : undefined);
  }

  /** Declares a lease lost whose validity has ended, because its holder asks before the timer runs. */
  expire(watched: WatchedLease): void {
    this.#end(watched, this.#lossReason(watched));
  }

  #lossReason(watched: WatchedLease): LossReason {
    const { loss } = watched.target.validity;
    if (loss !== undefined) {
      return loss;
    }
    if (wasSuspended(watched.target.validity, this.#clock)) {
      return "suspended";
    }
    return watched.attempts > 0 ? "engine-unreachable" : "expired";
  }

  #schedule(watched: WatchedLease, at: Instant = instantNow(this.#clock)): void {
    const { target } = watched;
    this.#clockJumps.recordDeadline(at);
    const endsAt = Math.min(this.#lossDeadline(target, at), target.endsAt);
    const dueAt = target.needsRenewal ? Math.min(watched.renewAt, endsAt) : endsAt;
    watched.leadMs = this.#leadMs(watched, dueAt);
    this.#queue.schedule(watched, Math.max(dueAt, at.now)); // a past time is no lateness of the timer
  }

  /** How much earlier the lease may be woken. Not for a deadline, for a repeat, whose delay is random, or for a report, which has its time. */
  #leadMs({ target, attempts, renewAt }: WatchedLease, dueAt: number): number {
    const isRenewal = target.needsRenewal && dueAt === renewAt && dueAt !== target.reportAt;
    const isGrouped = isRenewal && !target.isClaim && attempts === 0;
    return isGrouped ? Math.min(target.ttlMs / 20, maxGroupLeadMs) : 0;
  }

  /** When the timer declares the loss. `remainingMs()` and `throwIfLost()` need no timer, and use the end of the validity. */
  #lossDeadline(target: Renewable, at: Instant): number {
    return validityEnd(target.validity, at) - this.#lateness.leadMs(target.ttlMs);
  }

  /** When a third of the TTL has passed, or a report is due. For a claim: at once. */
  #renewalTime(target: Renewable, at: Instant): number {
    return target.isClaim
      ? 0
      : Math.min(target.reportAt, validityEnd(target.validity, at) - (target.ttlMs * 2) / 3);
  }

  /** Timers stop while the machine sleeps, so a jump of the wall clock causes a check of every lease. */
  #checkClocks(): void {
    const jumped = this.#clockJumps.readJumpMs(this.#clock) > suspendedMs;
    if (this.#queue.size > 0) {
      this.#queue.schedule(this.#clockJumps, this.#clock.now() + clockCheckMs);
    }
    if (jumped) {
      for (const item of Array.from(this.#queue.items())) {
        if (item instanceof WatchedLease && !item.isEnded) {
          item.renewAt = Math.min(item.renewAt, this.#renewalTime(item.target, instantNow(this.#clock)));
          this.#wake(item);
        }
      }
    }
  }
}

function causeOf({ lastError }: WatchedLease): unknown {
  return lastError ?? new Error("the engine has not replied to the renewal");
}

/** A watched lease, and the schedule of its renewals. */
export class WatchedLease implements Scheduled {
  dueAt = 0;
  slot = -1;
  renewAt = 0;
  /** How much earlier the lease may be woken, together with another one, ms. */
  leadMs = 0;
  /** How many renewals were sent since the last confirmed one. */
  attempts = 0;
  isEnded = false;
  lastError: unknown = undefined;
  readonly target: Renewable;

  constructor(target: Renewable) {
    this.target = target;
  }
}

class ClockJumpDetector implements Scheduled {
  dueAt = 0;
  slot = -1;
  readonly leadMs = maxGroupLeadMs;
  #offset: number;

  constructor(clock: Clock) {
    const { now, wall } = instantNow(clock);
    this.#offset = wall - now;
  }

  /** A deadline was computed from both clocks, so their present difference counts for the next reading too. */
  recordDeadline({ now, wall }: Instant): void {
    this.#offset = Math.min(this.#offset, wall - now);
  }

  /** How far the wall clock has advanced more than the monotonic clock since the last reading or deadline, ms. */
  readJumpMs(clock: Clock): number {
    const { now, wall } = instantNow(clock);
    const ahead = wall - now - this.#offset;
    this.#offset = wall - now;
    return ahead;
  }
}
