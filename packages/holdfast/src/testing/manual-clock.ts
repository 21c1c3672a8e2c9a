import type { Clock, Timer } from "../runtime/clock.ts";

/** A clock that stands still until it is told to go on. Times are milliseconds. */
export interface ManualClock extends Clock {
  /**
   * Lets time pass on both clocks. Timers run at their moments, in order, and what they set going runs before the next one.
   * One call at a time.
   */
  advance(ms: number): Promise<void>;
  /** The event loop is blocked: time passes on both clocks, and no timer runs before the next {@link advance}. */
  block(ms: number): void;
  /** The machine sleeps: the wall clock goes on, the monotonic one does not. */
  sleep(ms: number): void;
  /** Somebody sets the wall clock, forward or back. */
  jumpWall(ms: number): void;
  /** How many timers are pending. @param hold only those that keep a process alive, or only those that do not */
  timers(hold?: boolean): number;
}

interface PendingTimer {
  readonly action: () => void;
  readonly dueAt: number;
  readonly hold: boolean;
}

/** How long a chain of promises may be that runs between two timers. */
const settleTurns = 100;

/** @param start what the clocks say at first */
export function manualClock(start: { now?: number; wall?: number } = {}): ManualClock {
  let { now = 0, wall = 1_700_000_000_000 } = start;
  const timers = new Set<PendingTimer>();

  function passUntil(moment: number): void {
    wall += moment - now;
    now = moment;
  }

  return {
    now: () => now,
    wall: () => wall,
    setTimer(action, delayMs, hold = false) {
      const timer: PendingTimer = { action, dueAt: now + Math.max(0, delayMs), hold };
      timers.add(timer);
      return timer;
    },
    clearTimer(timer: Timer) {
      timers.delete(timer as PendingTimer);
    },
    async advance(ms) {
      const end = now + duration(ms);
      await settle();
      for (let next = nextTimer(timers, end); next !== undefined; next = nextTimer(timers, end)) {
        passUntil(Math.max(now, next.dueAt));
        timers.delete(next);
        next.action();
        await settle();
      }
      passUntil(Math.max(now, end));
      await settle();
    },
    block(ms) {
      passUntil(now + duration(ms));
    },
    sleep(ms) {
      wall += duration(ms);
    },
    jumpWall(ms) {
      wall += ms;
    },
    timers: (hold) => [...timers].filter((timer) => hold === undefined || timer.hold === hold).length,
  };
}

function duration(ms: number): number {
  if (!(ms >= 0)) {
    throw new RangeError(`Expected \`ms\` to be a number of ms, not negative, got ${ms}`);
  }
  return ms;
}

/** The first of those due by `end`; of those due at one moment the one that was set first. */
function nextTimer(timers: Iterable<PendingTimer>, end: number): PendingTimer | undefined {
  let found: PendingTimer | undefined;
  for (const timer of timers) {
    if (timer.dueAt <= end && (found === undefined || timer.dueAt < found.dueAt)) {
      found = timer;
    }
  }
  return found;
}

/** Lets promises run that are settled already, and those that follow from them. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < settleTurns; turn += 1) {
    await new Promise<void>((resolve) => {
      process.nextTick(resolve); // after all promises that are settled by now
    });
  }
}
