/** A timer that was set; give it back to {@link Clock.clearTimer}. */
export type Timer = unknown;

/**
 * The only reader of time and the only setter of timers. Handed in everywhere, so that all of Holdfast runs in a simulation.
 * All values are milliseconds, with fractions.
 */
export interface Clock {
  /** Monotonic time, on the scale of `performance.now()`. It may stand still while the machine sleeps. */
  now(): number;
  /** The wall clock. It may jump, and it goes on while the machine sleeps. */
  wall(): number;
  /**
   * Calls `action` once, not before `delayMs` has passed on the monotonic clock. With a delay of 0 the process first reads the
   * replies that have arrived.
   * A timer does not keep the process alive, unless `hold` says that somebody waits for it.
   */
  setTimer(action: () => void, delayMs: number, keepsProcessAlive?: boolean): Timer;
  clearTimer(timer: Timer): void;
}

/** One moment on both clocks. Elapsed time is the larger of the two differences. */
export interface Instant {
  readonly now: number;
  readonly wall: number;
}

export function instantNow(clock: Clock): Instant {
  return { now: clock.now(), wall: clock.wall() };
}

/** Milliseconds since `start`, by the clock that went further: a machine that slept must not gain time. */
export function elapsedSince(start: Instant, clock: Clock): number {
  return Math.max(clock.now() - start.now, clock.wall() - start.wall);
}

const maxTimerMs = 2 ** 31 - 1;
const hasImmediates = "setImmediate" in globalThis;

/** The clocks and timers of this process. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  setTimer(action, delayMs, hold = false) {
    // Node.js runs a timer that is due again and again before it reads a reply. An immediate runs after the replies.
    const timer =
      delayMs <= 0 && hasImmediates
        ? setImmediate(action)
        : setTimeout(action, Math.min(Math.max(0, Math.ceil(delayMs)), maxTimerMs));
    return hold ? timer : timer.unref();
  },
  clearTimer(timer) {
    clearTimeout(timer as NodeJS.Timeout);
    if (hasImmediates) {
      clearImmediate(timer as NodeJS.Immediate);
    }
  },
};
