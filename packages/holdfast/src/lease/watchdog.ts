import { instantNow, type Clock } from "../runtime/clock.ts";
import { publish, trace, traces } from "../diagnostics.ts";
import type { ExtendResult } from "../driver.ts";
import type { LossReason } from "../errors.ts";
import { TimerLateness } from "../runtime/timer-lateness.ts";
import { jittered, type Random } from "../runtime/random.ts";
import { TimerQueue, type Scheduled } from "../runtime/timer-queue.ts";
import { wasSuspended, remainingValidityMs, extendValidity, type Validity } from "../validity.ts";

/** What the watchdog keeps alive, or at least ends in time. */
export interface Renewable {
  readonly key: string;
  readonly validity: Validity;
  readonly ttlMs: number;
  /** Whether it is to be prolonged; where false, only its end is watched. */
  readonly needsRenewal: boolean;
  /** Granted for less than its TTL: to be prolonged at once. */
  readonly isClaim: boolean;
  /** When it ends whatever the engine says, on the scale of `clock.now()`. */
  readonly endsAt: number;
  /** False: nobody can use or release it any more. */
  isLeaseReferenced(): boolean;
  /** Asks the engine for another TTL. Never rejects. */
  renew(): Promise<ExtendResult>;
  /** The engine confirmed that it goes on. */
  claimConfirmed(): void;
  markLost(reason: LossReason, cause?: unknown): void;
  reportLeak(): void;
}

const clockCheckMs = 1_000;
const suspendedMs = 50;

/** How long after a grant the first renewal is due at the earliest: work that is done by then costs no request. */
const minRenewalDelayMs = 5;

/**
 * Keeps leases alive, all of them with one timer, and ends each before its validity does, whatever a renewal under way is doing:
 * the timer is due earlier by as much as timers of this process run late.
 * A renewal is sent when a third of the TTL has passed. A failed renewal is repeated with jittered backoff until the deadline. A
 * renewal without an answer is repeated after another third, because many repeats would keep a slow server slow. The first answer
 * counts: `renewed` from when its request was sent, `lost` at once, `unknown` not at all.
 */
export class Watchdog {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #lateness: TimerLateness;
  readonly #queue: TimerQueue<WatchedLease | ClockJumpDetector>;
  readonly #clockJumps: ClockJumpDetector;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
    this.#lateness = new TimerLateness(clock);
    this.#queue = new TimerQueue(clock, (item) => {
      this.#lateness.record(item.dueAt);
      if (item instanceof WatchedLease) {
        this.#wake(item);
      } else {
        this.#checkClocks();
      }
    });
    this.#clockJumps = new ClockJumpDetector(clock);
  }

  /** Takes a lease into the rounds; give the result back to {@link unwatch}. */
  watch(target: Renewable): WatchedLease {
    if (this.#queue.size === 0) {
      this.#queue.schedule(this.#clockJumps, this.#clock.now() + clockCheckMs);
    }
    const watched = new WatchedLease(target);
    const remainingMs = remainingValidityMs(target.validity, this.#clock); // little where it is adopted late: what it waits for is over then
    watched.renewAt = Math.max(
      this.#renewalTime(target),
      this.#clock.now() + Math.min(minRenewalDelayMs, remainingMs / 20),
    );
    this.#schedule(watched);
    return watched;
  }

  unwatch(watched: WatchedLease): void {
    watched.isEnded = true;
    this.#queue.cancel(watched);
    if (this.#queue.size === 1) {
      this.#queue.cancel(this.#clockJumps);
    }
  }

  /** Its validity moved or it wants no renewal any more. */
  reschedule(watched: WatchedLease): void {
    if (!watched.isEnded) {
      watched.renewAt = this.#renewalTime(watched.target);
      this.#schedule(watched);
    }
  }

  /** The engine answers again: what was not confirmed because of that is tried again at once. */
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
    const now = this.#clock.now();
    if (this.#lossDeadline(target) <= now) {
      this.#end(watched, this.#lossReason(watched));
    } else if (now >= target.endsAt) {
      this.#end(watched, "max-hold");
    } else {
      if (target.needsRenewal && now >= watched.renewAt) {
        this.#tryRenewal(watched, now);
      }
      this.#schedule(watched);
    }
  }

  #tryRenewal(watched: WatchedLease, now: number): void {
    const { target } = watched;
    const dueAt = this.#renewalTime(target);
    if (dueAt > now) {
      watched.renewAt = dueAt; // prolonged meanwhile, by its owner or an earlier holder of the same run
      return;
    }
    if (!target.isLeaseReferenced()) {
      target.reportLeak();
      return;
    }
    watched.attempts += 1;
    watched.renewAt = now + target.ttlMs / 3;
    const marginMs = remainingValidityMs(target.validity, this.#clock);
    if (marginMs < target.ttlMs / 3) {
      publish("late-renewal", () => ({ key: target.key, lateMs: now - dueAt, marginMs }));
    }
    void trace(
      traces.renew,
      () => ({ key: target.key, marginMs }),
      () => target.renew(),
      (context, extension) => (context.outcome = extension.outcome),
    ).then((extension) => this.#renewalAnswered(watched, extension));
  }

  #renewalAnswered(watched: WatchedLease, extension: ExtendResult): void {
    const { target } = watched;
    switch (extension.outcome) {
      case "renewed":
        // The validity belongs to the run: whoever holds the grant by now has it.
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
    if (this.#lossDeadline(target) <= this.#clock.now()) {
      this.#end(watched, this.#lossReason(watched)); // the process stood still: its timers come behind all that it has to read
    } else if (extension.outcome === "renewed") {
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
    watched.target.markLost(reason, reason === "engine-unreachable" ? watched.lastError : undefined);
  }

  #lossReason(watched: WatchedLease): LossReason {
    if (wasSuspended(watched.target.validity, this.#clock)) {
      return "suspended";
    }
    return watched.attempts > 0 ? "engine-unreachable" : "expired";
  }

  #schedule(watched: WatchedLease): void {
    const { target } = watched;
    this.#clockJumps.recordDeadline(this.#clock);
    const endsAt = Math.min(this.#lossDeadline(target), target.endsAt);
    const dueAt = target.needsRenewal ? Math.min(watched.renewAt, endsAt) : endsAt;
    this.#queue.schedule(watched, Math.max(dueAt, this.#clock.now())); // one that was due before it was set is not late
  }

  /** When the loss is declared. `remainingMs()` and `throwIfLost()` need no timer, and go by the end of the validity. */
  #lossDeadline(target: Renewable): number {
    return this.#expiryOf(target) - this.#lateness.leadMs(target.ttlMs);
  }

  /** When a third of the TTL has passed; for a claim at once. */
  #renewalTime(target: Renewable): number {
    return target.isClaim ? 0 : this.#expiryOf(target) - (target.ttlMs * 2) / 3;
  }

  /** By the stricter of the two clocks: they differ after the machine slept. */
  #expiryOf(target: Renewable): number {
    return this.#clock.now() + remainingValidityMs(target.validity, this.#clock);
  }

  /** Timers stand still while the machine sleeps: after a jump of the wall clock every lease is looked at. */
  #checkClocks(): void {
    const jumped = this.#clockJumps.readJumpMs(this.#clock) > suspendedMs;
    if (this.#queue.size > 0) {
      this.#queue.schedule(this.#clockJumps, this.#clock.now() + clockCheckMs);
    }
    if (jumped) {
      for (const item of Array.from(this.#queue.items())) {
        if (item instanceof WatchedLease && !item.isEnded) {
          item.renewAt = Math.min(item.renewAt, this.#renewalTime(item.target));
          this.#wake(item);
        }
      }
    }
  }
}

/** One lease in the rounds. */
export class WatchedLease implements Scheduled {
  dueAt = 0;
  slot = -1;
  renewAt = 0;
  /** Renewals tried since the last that was confirmed. */
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
  #offset: number;

  constructor(clock: Clock) {
    const { now, wall } = instantNow(clock);
    this.#offset = wall - now;
  }

  /** A deadline is reckoned by both clocks: how far they are apart then counts, too. */
  recordDeadline(clock: Clock): void {
    const { now, wall } = instantNow(clock);
    this.#offset = Math.min(this.#offset, wall - now);
  }

  /** How far the wall clock ran ahead of the monotonic one since the last reading, or since a deadline was reckoned, ms. */
  readJumpMs(clock: Clock): number {
    const { now, wall } = instantNow(clock);
    const ahead = wall - now - this.#offset;
    this.#offset = wall - now;
    return ahead;
  }
}
