import type { Clock } from "../../clock.ts";

interface GivingUpOptions {
  readonly clock: Clock;
  /**
   * Releases the grant by itself. Knows that the passing on may have done so.
   * @param patientUntil when it rejects where no answer has come, on the scale of `clock.now()`
   */
  readonly release: (patientUntil: number) => Promise<boolean>;
  /** How long all of it may take, ms: the passing on, and the release that follows where it is not answered. */
  readonly budgetMs: number;
}

/** How much of the budget is the passing on's. */
const passingShare = 0.5;

/** A grant that is given up by being passed on. Where that is not answered in time, it is released by itself. */
export class GivingUp {
  /** Whether it was still ours. Rejects as a release does. */
  readonly released: Promise<boolean>;
  /** The passing on was answered. No effect once it is settled otherwise. */
  answered!: (released: boolean) => void;
  /** The passing on was abandoned. No effect once it is settled otherwise. */
  alone!: () => void;

  constructor({ clock, release, budgetMs }: GivingUpOptions) {
    const patientUntil = clock.now() + budgetMs;
    this.released = new Promise((resolve, reject) => {
      let isDone = false;
      let isAlone = false;
      this.answered = (released) => {
        isDone = true;
        clock.clearTimer(timer);
        if (released || !isAlone) {
          resolve(released); // else the release may have come before it, and tells
        }
      };
      this.alone = () => {
        if (!isDone) {
          isDone = true;
          isAlone = true;
          clock.clearTimer(timer);
          release(patientUntil).then(resolve, reject);
        }
      };
      const timer = clock.setTimer(this.alone, budgetMs * passingShare);
    });
  }
}

/** Of a request that gives up nothing. */
export const alreadyReleased: Promise<boolean> = Promise.resolve(true);
