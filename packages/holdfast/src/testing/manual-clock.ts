import { afterPromises, type Clock, type Timer } from "../runtime/clock.ts";

/** A clock that advances only by calls of its methods. Times are milliseconds. */
export interface ManualClock extends Clock {
  /**
   * Advances both clocks. Timers run at their due times, in order. Promises that a timer settles run before the next timer.
   * Only one call may run at a time.
   *
   * @throws Error during another call, because time would pass before the promises of a timer are settled
   */
  advance(ms: number): Promise<void>;
  /** Simulates a blocked event loop: both clocks advance, and no timer runs before the next {@link advance}. */
  block(ms: number): void;
  /** Simulates a sleeping machine: only the wall clock advances. */
  sleep(ms: number): void;
  /** Sets the wall clock forward or back. */
  jumpWall(ms: number): void;
  /** The number of pending timers. @param hold count only timers that keep the process alive, or only timers that do not */
  timers(hold?: boolean): number;
}

interface PendingTimer {
  readonly action: () => void;
  readonly dueAt: number;
  readonly hold: boolean;
}

/** The maximum length of a promise chain between two timers. */
const settleTurns = 100;

/**
 * @param start the initial times of the clocks
 * @example
 * ```ts
 * const clock = manualClock();
 * const locks = createLocks(memory({ clock }));
 * const lease = await locks.acquire("key", { ttlMs: 1_000, renew: false });
 * await clock.advance(1_000);
 * expect(lease.isLost).toBe(true);
 * ```
 */
export function manualClock(start: { now?: number; wall?: number } = {}): ManualClock {
  let { now = 0, wall = 1_700_000_000_000 } = start;
  const timers = new Set<PendingTimer>();
  let isAdvancing = false;

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
      if (isAdvancing) {
        throw new Error("Expected the previous `advance` of the clock to end first");
      }
      isAdvancing = true;
      try {
        await settle();
        for (let next = nextTimer(timers, end); next !== undefined; next = nextTimer(timers, end)) {
          passUntil(Math.max(now, next.dueAt));
          timers.delete(next);
          next.action();
          await settle();
        }
        passUntil(Math.max(now, end));
        await settle();
      } finally {
        isAdvancing = false;
      }
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

/** The timer that is due first, by `end`. Among timers due at the same time, the timer that was set first. */
function nextTimer(timers: Iterable<PendingTimer>, end: number): PendingTimer | undefined {
  let found: PendingTimer | undefined;
  for (const timer of timers) {
    if (timer.dueAt <= end && (found === undefined || timer.dueAt < found.dueAt)) {
      found = timer;
    }
  }
  return found;
}

/** Runs the reactions of settled promises, and of the promises that they settle. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < settleTurns; turn += 1) {
    await new Promise<void>((resolve) => {
      afterPromises(resolve); // runs after the reactions of all promises that are settled by now
    });
  }
}
