import { momentOf, type Clock } from "../runtime/clock.ts";
import { tell, traced, traces } from "../diagnostics.ts";
import type { Extension } from "../driver.ts";
import type { LossReason } from "../errors.ts";
import { Lateness } from "../runtime/timer-lateness.ts";
import { jittered, type Random } from "../runtime/random.ts";
import { TimerQueue, type Timed } from "../runtime/timer-queue.ts";
import { endsEarly, leftOf, prolong, type Validity } from "../validity.ts";

/** What the watchdog keeps alive, or at least ends in time. */
export interface Renewable {
  readonly key: string;
  readonly validity: Validity;
  readonly ttlMs: number;
  /** Whether it is to be prolonged; where false, only its end is watched. */
  readonly wantsRenewal: boolean;
  /** Granted for less than its TTL: to be prolonged at once. */
  readonly isClaim: boolean;
  /** When it ends whatever the engine says, on the scale of `clock.now()`. */
  readonly endsAt: number;
  /** False: nobody can use or release it any more. */
  isReachable(): boolean;
  /** Asks the engine for another TTL. Never rejects. */
  renew(): Promise<Extension>;
  /** The engine confirmed that it goes on. */
  renewed(): void;
  lose(reason: LossReason, cause?: unknown): void;
  leak(): void;
}

const pulseMs = 1_000;
const suspendedMs = 50;

/** How long after a grant the first renewal is due at the earliest: work that is done by then costs no request. */
const settleMs = 5;

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
  readonly #lateness: Lateness;
  readonly #queue: TimerQueue<Watch | Pulse>;
  readonly #pulse: Pulse;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
    this.#lateness = new Lateness(clock);
    this.#queue = new TimerQueue(clock, (item) => {
      this.#lateness.note(item.dueAt);
      if (item instanceof Watch) {
        this.#wake(item);
      } else {
        this.#beat();
      }
    });
    this.#pulse = new Pulse(clock);
  }

  /** Takes a lease into the rounds; give the result back to {@link forget}. */
  watch(target: Renewable): Watch {
    if (this.#queue.size === 0) {
      this.#queue.schedule(this.#pulse, this.#clock.now() + pulseMs);
    }
    const watch = new Watch(target);
    const leftMs = leftOf(target.validity, this.#clock); // little where it is adopted late: what it waits for is over then
    watch.renewAt = Math.max(this.#renewalTime(target), this.#clock.now() + Math.min(settleMs, leftMs / 20));
    this.#schedule(watch);
    return watch;
  }

  forget(watch: Watch): void {
    watch.isOver = true;
    this.#queue.cancel(watch);
    if (this.#queue.size === 1) {
      this.#queue.cancel(this.#pulse);
    }
  }

  /** Its validity moved or it wants no renewal any more. */
  review(watch: Watch): void {
    if (!watch.isOver) {
      watch.renewAt = this.#renewalTime(watch.target);
      this.#schedule(watch);
    }
  }

  /** The engine answers again: what was not confirmed because of that is tried again at once. */
  answersAgain(): void {
    for (const item of Array.from(this.#queue.items())) {
      if (item instanceof Watch && item.lastError !== undefined) {
        item.renewAt = this.#clock.now();
        this.#schedule(item);
      }
    }
    this.#queue.wakeDue();
  }

  targets(): Renewable[] {
    return this.#queue.items().flatMap((item) => (item instanceof Watch ? [item.target] : []));
  }

  #wake(watch: Watch): void {
    const { target } = watch;
    const now = this.#clock.now();
    if (this.#deadlineOf(target) <= now) {
      this.#end(watch, this.#reasonOfEnd(watch));
    } else if (now >= target.endsAt) {
      this.#end(watch, "max-hold");
    } else {
      if (target.wantsRenewal && now >= watch.renewAt) {
        this.#tryRenewal(watch, now);
      }
      this.#schedule(watch);
    }
  }

  #tryRenewal(watch: Watch, now: number): void {
    const { target } = watch;
    const dueAt = this.#renewalTime(target);
    if (dueAt > now) {
      watch.renewAt = dueAt; // prolonged meanwhile, by its owner or an earlier holder of the same run
      return;
    }
    if (!target.isReachable()) {
      target.leak();
      return;
    }
    watch.tries += 1;
    watch.renewAt = now + target.ttlMs / 3;
    const marginMs = leftOf(target.validity, this.#clock);
    if (marginMs < target.ttlMs / 3) {
      tell("late-renewal", () => ({ key: target.key, lateMs: now - dueAt, marginMs }));
    }
    void traced(
      traces.renew,
      () => ({ key: target.key, marginMs }),
      () => target.renew(),
      (context, extension) => (context.outcome = extension.outcome),
    ).then((extension) => this.#answered(watch, extension));
  }

  #answered(watch: Watch, extension: Extension): void {
    const { target } = watch;
    switch (extension.outcome) {
      case "renewed":
        // The validity belongs to the run: whoever holds the grant by now has it.
        prolong(target.validity, extension.validity, this.#clock);
        watch.tries = 0;
        watch.lastError = undefined;
        break;
      case "lost":
        if (!watch.isOver) {
          this.#end(watch, extension.reason);
        }
        return;
      case "unknown":
        watch.lastError = extension.error;
        watch.renewAt = this.#clock.now() + this.#backoffMs(watch);
        break;
    }
    if (watch.isOver) {
      return;
    }
    if (this.#deadlineOf(target) <= this.#clock.now()) {
      this.#end(watch, this.#reasonOfEnd(watch)); // the process stood still: its timers come behind all that it has to read
    } else if (extension.outcome === "renewed") {
      target.renewed();
      this.review(watch);
    } else {
      this.#schedule(watch);
    }
  }

  #backoffMs({ target: { ttlMs }, tries }: Watch): number {
    const longestMs = Math.min(ttlMs / 6, Math.max(10, (ttlMs / 30) * 2 ** (tries - 1)));
    return jittered(this.#random, longestMs / 1.5, 0.5);
  }

  #end(watch: Watch, reason: LossReason): void {
    this.forget(watch);
    watch.target.lose(reason, reason === "engine-unreachable" ? watch.lastError : undefined);
  }

  #reasonOfEnd(watch: Watch): LossReason {
    if (endsEarly(watch.target.validity, this.#clock)) {
      return "suspended";
    }
    return watch.tries > 0 ? "engine-unreachable" : "expired";
  }

  #schedule(watch: Watch): void {
    const { target } = watch;
    this.#pulse.note(this.#clock);
    const endsAt = Math.min(this.#deadlineOf(target), target.endsAt);
    const dueAt = target.wantsRenewal ? Math.min(watch.renewAt, endsAt) : endsAt;
    this.#queue.schedule(watch, Math.max(dueAt, this.#clock.now())); // one that was due before it was set is not late
  }

  /** When the loss is declared. `remainingMs()` and `throwIfLost()` need no timer, and go by the end of the validity. */
  #deadlineOf(target: Renewable): number {
    return this.#endOf(target) - this.#lateness.leadMs(target.ttlMs);
  }

  /** When a third of the TTL has passed; for a claim at once. */
  #renewalTime(target: Renewable): number {
    return target.isClaim ? 0 : this.#endOf(target) - (target.ttlMs * 2) / 3;
  }

  /** By the stricter of the two clocks: they differ after the machine slept. */
  #endOf(target: Renewable): number {
    return this.#clock.now() + leftOf(target.validity, this.#clock);
  }

  /** Timers stand still while the machine sleeps: after a jump of the wall clock every lease is looked at. */
  #beat(): void {
    const jumped = this.#pulse.read(this.#clock) > suspendedMs;
    if (this.#queue.size > 0) {
      this.#queue.schedule(this.#pulse, this.#clock.now() + pulseMs);
    }
    if (jumped) {
      for (const item of Array.from(this.#queue.items())) {
        if (item instanceof Watch && !item.isOver) {
          item.renewAt = Math.min(item.renewAt, this.#renewalTime(item.target));
          this.#wake(item);
        }
      }
    }
  }
}

/** One lease in the rounds. */
export class Watch implements Timed {
  dueAt = 0;
  slot = -1;
  renewAt = 0;
  /** Renewals tried since the last that was confirmed. */
  tries = 0;
  isOver = false;
  lastError: unknown = undefined;
  readonly target: Renewable;

  constructor(target: Renewable) {
    this.target = target;
  }
}

class Pulse implements Timed {
  dueAt = 0;
  slot = -1;
  #offset: number;

  constructor(clock: Clock) {
    const { now, wall } = momentOf(clock);
    this.#offset = wall - now;
  }

  /** A deadline is reckoned by both clocks: how far they are apart then counts, too. */
  note(clock: Clock): void {
    const { now, wall } = momentOf(clock);
    this.#offset = Math.min(this.#offset, wall - now);
  }

  /** How far the wall clock ran ahead of the monotonic one since the last reading, or since a deadline was reckoned, ms. */
  read(clock: Clock): number {
    const { now, wall } = momentOf(clock);
    const ahead = wall - now - this.#offset;
    this.#offset = wall - now;
    return ahead;
  }
}
