import type { Clock } from "holdfast";

type Timer = ReturnType<Clock["setTimer"]>;

interface Event {
  readonly moment: number;
  action: (() => void) | undefined;
}

/** The time of a correct wall clock at the start of a world. */
export const wallStart = 1_700_000_000_000;

/** More events within a millisecond are a livelock. */
const maxEventsPerMs = 20_000;

/** Time does not advance, because each event causes another event at once. */
export class LivelockError extends Error {}

/** The true time, ms, which no machine of the world can read. Events of one time run in the order in which they were planned. */
export class VirtualClock {
  /** The next event is last. */
  readonly #events: Event[] = [];
  readonly #afterEach: () => void;
  #now = 0;
  /** How many events have run within the present millisecond. */
  #eventCount = 0;

  /** @param afterEach called after each event, when all its microtasks have run */
  constructor(afterEach: () => void = () => undefined) {
    this.#afterEach = afterEach;
  }

  get now(): number {
    return this.#now;
  }

  /** @returns cancels the event */
  at(moment: number, action: () => void): () => void {
    const event: Event = { moment: Math.max(this.#now, moment), action };
    this.#events.splice(this.#indexOf(event.moment), 0, event);
    return () => {
      event.action = undefined;
    };
  }

  /**
   * Advances the time, and runs the events that become due.
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
      throw new LivelockError(`more than ${maxEventsPerMs} events within one millisecond`);
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

/** Waits for all promises and ticks that are ready, and for all that follow from them. */
function waitForMicrotasks(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Added to each timer, so that rounding never makes a timer early, ms. */
const timerResolutionMs = 1e-6;

interface ViewTimer {
  readonly action: () => void;
  readonly dueAt: number;
  cancel: () => void;
}

/** The clocks of one machine of the world, and the timers of a process on that machine. */
export class ClockView implements Clock {
  readonly #world: VirtualClock;
  readonly #rate: number;
  readonly #timers = new Set<ViewTimer>();
  #wallAheadMs: number;
  #sleptMs = 0;
  #sleepStartedAt: number | undefined;
  #isFrozen = false;
  #isDead = false;
  /** The time before a pause, for the readings of the present turn that preceded the pause. */
  #earlier: { readonly now: number; readonly wall: number; readings: number } | undefined;

  /** @param rate the speed of the clock; 1.01: one percent too fast */
  constructor(world: VirtualClock, { rate = 1, wall = 0 }: { rate?: number; wall?: number } = {}) {
    this.#world = world;
    this.#rate = rate;
    this.#wallAheadMs = wall;
  }

  now(): number {
    return this.#readEarlier()?.now ?? this.#now();
  }

  #now(): number {
    const until = this.#sleepStartedAt ?? this.#world.now;
    return (until - this.#sleptMs) * this.#rate;
  }

  wall(): number {
    return this.#readEarlier()?.wall ?? this.#wall();
  }

  #wall(): number {
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

  /**
   * The process pauses in the middle of a turn.
   * @returns resumes the turn: its first `readings` show the time before the pause
   */
  pause(): (readings: number) => void {
    const [now, wall] = [this.#now(), this.#wall()];
    return (readings) => {
      this.#earlier = { now, wall, readings };
      // After the present turn, and before the next event of the world.
      setImmediate(() => {
        this.endPause();
      });
    };
  }

  /** The next reading shows the present time. @returns whether the present turn had a pause */
  endPause(): boolean {
    const hadPause = this.#earlier !== undefined;
    this.#earlier = undefined;
    return hadPause;
  }

  #readEarlier(): { readonly now: number; readonly wall: number } | undefined {
    const earlier = this.#earlier;
    return earlier !== undefined && earlier.readings-- > 0 ? earlier : undefined;
  }

  /** How many timers are pending. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Sets the wall clock. */
  step(ms: number): void {
    this.#wallAheadMs += ms;
  }

  /** Stops all timers. @param sleeps the machine sleeps, so that its monotonic clock stands still */
  freeze(sleeps: boolean): void {
    this.#isFrozen = true;
    this.#sleepStartedAt = sleeps ? this.#world.now : undefined;
  }

  /** Timers that became due while the machine was frozen run now, in order. */
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

  /** Stops all timers for ever. */
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
