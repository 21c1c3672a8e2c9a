import type { Clock } from "holdfast";

type Timer = ReturnType<Clock["setTimer"]>;

interface Event {
  readonly moment: number;
  action: (() => void) | undefined;
}

/** What a right wall clock says as a world begins. */
export const wallStart = 1_700_000_000_000;

/** So much happens within a millisecond only where something goes round in circles. */
const maxEventsPerMs = 20_000;

/** Time stands still, as what happens brings about more of the same at once. */
export class LivelockError extends Error {}

/** True time, ms, which nobody in the world can read. What is due at one moment happens in the order in which it was planned. */
export class VirtualClock {
  /** The next one last. */
  readonly #events: Event[] = [];
  readonly #afterEach: () => void;
  #now = 0;
  /** How much has happened within the present millisecond. */
  #eventCount = 0;

  /** @param afterEach called whenever what happened has come to rest */
  constructor(afterEach: () => void = () => undefined) {
    this.#afterEach = afterEach;
  }

  get now(): number {
    return this.#now;
  }

  /** @returns what cancels it */
  at(moment: number, action: () => void): () => void {
    const event: Event = { moment: Math.max(this.#now, moment), action };
    this.#events.splice(this.#indexOf(event.moment), 0, event);
    return () => {
      event.action = undefined;
    };
  }

  /**
   * Lets time pass.
   * @throws {LivelockError}
   */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await waitForMicrotasks();
    for (
      let next = this.#events.at(-1);
      next !== undefined && next.moment <= end;
      next = this.#events.at(-1)
    ) {
      this.#events.pop();
      if (next.action !== undefined) {
        this.#count(next.moment);
        this.#now = next.moment;
        next.action();
        await waitForMicrotasks();
        this.#afterEach();
      }
    }
    this.#now = end;
  }

  #count(moment: number): void {
    this.#eventCount = Math.floor(moment) === Math.floor(this.#now) ? this.#eventCount + 1 : 0;
    if (this.#eventCount > maxEventsPerMs) {
      throw new LivelockError("time stands still");
    }
  }

  #indexOf(moment: number): number {
    let [low, high] = [0, this.#events.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#events[middle] as Event).moment > moment) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
}

/** All promises and ticks that are ready, and those that follow from them. */
function waitForMicrotasks(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** A timer is never early, whatever the rounding. */
const timerResolutionMs = 1e-6;

interface ViewTimer {
  readonly action: () => void;
  readonly dueAt: number;
  cancel: () => void;
}

/** What one machine of the world takes for the time, and the timers of a process on it. */
export class ClockView implements Clock {
  readonly #world: VirtualClock;
  readonly #rate: number;
  readonly #timers = new Set<ViewTimer>();
  #wallAheadMs: number;
  #sleptMs = 0;
  #sleepStartedAt: number | undefined;
  #isFrozen = false;
  #isDead = false;

  /** @param rate how fast it goes; 1.01: one percent too fast */
  constructor(world: VirtualClock, { rate = 1, wall = 0 }: { rate?: number; wall?: number } = {}) {
    this.#world = world;
    this.#rate = rate;
    this.#wallAheadMs = wall;
  }

  now(): number {
    const until = this.#sleepStartedAt ?? this.#world.now;
    return (until - this.#sleptMs) * this.#rate;
  }

  wall(): number {
    return this.#wallAheadMs + this.#world.now * this.#rate;
  }

  setTimer(action: () => void, delayMs: number): Timer {
    const timer: ViewTimer = { action, dueAt: this.now() + Math.max(0, delayMs), cancel: () => undefined };
    if (!this.#isDead) {
      this.#timers.add(timer);
      this.#arm(timer);
    }
    return timer;
  }

  clearTimer(timer: Timer): void {
    if (timer !== undefined && this.#timers.delete(timer as ViewTimer)) {
      (timer as ViewTimer).cancel();
    }
  }

  /** How many timers are pending. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Somebody sets the wall clock. */
  step(ms: number): void {
    this.#wallAheadMs += ms;
  }

  /** No timer runs. @param sleeps the machine does: its monotonic clock stands still */
  freeze(sleeps: boolean): void {
    this.#isFrozen = true;
    this.#sleepStartedAt = sleeps ? this.#world.now : undefined;
  }

  /** What was due meanwhile runs now, late, in order. */
  thaw(): void {
    if (this.#sleepStartedAt !== undefined) {
      this.#sleptMs += this.#world.now - this.#sleepStartedAt;
      this.#sleepStartedAt = undefined;
    }
    this.#isFrozen = false;
    for (const timer of [...this.#timers].sort((one, other) => one.dueAt - other.dueAt)) {
      timer.cancel();
      this.#arm(timer);
    }
  }

  /** No timer ever runs again. */
  die(): void {
    this.#isDead = true;
    for (const timer of this.#timers) {
      timer.cancel();
    }
    this.#timers.clear();
  }

  #arm(timer: ViewTimer): void {
    const moment = timer.dueAt / this.#rate + this.#sleptMs + timerResolutionMs;
    timer.cancel = this.#world.at(moment, () => {
      if (!this.#isFrozen) {
        this.#timers.delete(timer);
        timer.action();
      }
    });
  }
}
