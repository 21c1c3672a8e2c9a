/** A timer, for {@link Clock.clearTimer}. */
export type Timer = unknown;

/**
 * The only source of time and timers. The clock is injected everywhere, so that all of Holdfast runs in a simulation.
 * All values are milliseconds, with fractions.
 */
export interface Clock {
  /** Monotonic time, on the scale of `performance.now()`. It may stop while the machine sleeps. */
  now(): number;
  /** The wall clock, milliseconds since 1970. It may jump, and it does not stop while the machine sleeps. */
  wall(): number;
  /**
   * Calls `action` once, after at least `delayMs` on the monotonic clock. With a delay of 0 the process first reads the replies that
   * have arrived.
   * @param keepsProcessAlive whether the timer keeps the process alive, by default false
   */
  setTimer(action: () => void, delayMs: number, keepsProcessAlive?: boolean): Timer;
  clearTimer(timer: Timer): void;
  /**
   * Changes whether a timer keeps the process alive. With it a timer that has nothing to do stays set for a while, because to clear and
   * set timers costs more than most of what they are for. Absent: such a timer is cleared.
   */
  keepAlive?(timer: Timer, keepsProcessAlive: boolean): void;
}

/** One moment on both clocks. */
export interface Instant {
  readonly now: number;
  readonly wall: number;
}

export function instantNow(clock: Clock): Instant {
  return { now: clock.now(), wall: clock.wall() };
}

/** Milliseconds since `start`, by the clock that advanced further, because the monotonic clock may stop while the machine sleeps. */
export function elapsedSince(start: Instant, clock: Clock): number {
  return elapsedBetween(start, instantNow(clock));
}

export function elapsedBetween(start: Instant, end: Instant): number {
  return Math.max(end.now - start.now, end.wall - start.wall);
}

/** The time in a header of HTTP, milliseconds since 1970; undefined: the header is missing, or is no time. */
export function parseHttpDate(header: string | null): number | undefined {
  const time = Date.parse(header ?? "");
  return Number.isNaN(time) ? undefined : time;
}

const maxTimerMs = 2 ** 31 - 1;

/** A browser has timers only. */
const globals = globalThis as Partial<Pick<typeof globalThis, "setImmediate" | "clearImmediate" | "process">>;

/**
 * The timers and clocks that the process had when this module was loaded. A test runner may replace them later: its fake timers may never
 * run, and it discards them when it restores the real ones.
 */
const real = {
  setTimeout: globalThis.setTimeout.bind(globalThis),
  clearTimeout: globalThis.clearTimeout.bind(globalThis),
  setImmediate: globals.setImmediate?.bind(globalThis),
  clearImmediate: globals.clearImmediate?.bind(globalThis),
  now: performance.now.bind(performance),
  wall: Date.now.bind(Date),
  hrtime: globals.process?.hrtime,
};

/** Calls `action` after all promises of this turn of the event loop have run, and before the next turn. */
export const afterPromises: (action: () => void) => void =
  globals.process?.nextTick?.bind(process) ?? globalThis.queueMicrotask.bind(globalThis);

/** Calls `action` after the present function and the microtasks that already wait. */
export const asMicrotask: (action: () => void) => void = globalThis.queueMicrotask.bind(globalThis);

/** An immediate of Node. The class separates it from a timer of `setTimeout`, which may be a number beside Node's immediates. */
class ImmediateTimer {
  readonly handle: NodeJS.Immediate;

  constructor(handle: NodeJS.Immediate) {
    this.handle = handle;
  }
}

/** The clocks and timers of this process. */
export const systemClock: Clock = {
  now: real.now,
  wall: real.wall,
  setTimer(action, delayMs, keepsProcessAlive = false) {
    // Node.js may run a due timer repeatedly before it reads a reply. An immediate runs after the replies. The event loop does not wake
    // up for an unreferenced immediate, so an immediate keeps the process alive until it has run.
    if (delayMs <= 0 && real.setImmediate) {
      return new ImmediateTimer(real.setImmediate(action));
    }
    const timer = real.setTimeout(action, Math.min(Math.max(0, Math.ceil(delayMs)), maxTimerMs));
    if (!keepsProcessAlive) {
      (timer as Partial<NodeJS.Timeout>).unref?.(); // a browser has no such method
    }
    return timer;
  },
  clearTimer(timer) {
    if (timer instanceof ImmediateTimer) {
      real.clearImmediate?.(timer.handle);
    } else {
      real.clearTimeout(timer as NodeJS.Timeout);
    }
  },
  keepAlive(timer, keepsProcessAlive) {
    if (!(timer instanceof ImmediateTimer)) {
      (timer as Partial<NodeJS.Timeout>)[keepsProcessAlive ? "ref" : "unref"]?.();
    }
  },
};

/**
 * Bounds of how far the monotonic clock that all threads of the process share is ahead of the `now()` of {@link systemClock} in this
 * thread, ms. They differ, because the thread may pause between two readings. A thread that takes the larger lead where another takes
 * the smaller one never reads a time of that thread as too late.
 */
export function sharedClockLead(): { readonly leastMs: number; readonly mostMs: number } {
  const { hrtime = process.hrtime } = real;
  let [leastMs, mostMs] = [-Infinity, Infinity];
  for (let count = 0; count < 5; count += 1) {
    const before = Number(hrtime.bigint()) / 1e6;
    const now = real.now();
    const after = Number(hrtime.bigint()) / 1e6;
    leastMs = Math.max(leastMs, before - now);
    mostMs = Math.min(mostMs, after - now);
  }
  return { leastMs, mostMs };
}

/** A time in the form of ISO 8601, in UTC with milliseconds. @param wallMs ms since 1970 */
export function isoTime(wallMs: number): string {
  return new Date(wallMs).toISOString();
}
