import type { Clock } from "../../clock.ts";

interface GivingUpOptions {
  readonly clock: Clock;
  /** Releases the grant by itself. */
  readonly release: () => Promise<boolean>;
  /** How long the passing on may take, ms. */
  readonly patienceMs: number;
}

/** A grant that is given up by being passed on. Where that is not answered in time, it is released by itself. */
export class GivingUp {
  /** Whether it was still ours. Rejects as a release does. */
  readonly released: Promise<boolean>;
  /** The passing on was answered. No effect once it is settled otherwise. */
  answered!: (released: boolean) => void;
  /** The passing on was abandoned. No effect once it is settled otherwise. */
  alone!: () => void;

  constructor({ clock, release, patienceMs }: GivingUpOptions) {
    this.released = new Promise((resolve, reject) => {
      let isDone = false;
      this.answered = (released) => {
        isDone = true;
        clock.clearTimer(timer);
        resolve(released); // also after `alone`: it tells more than the release behind it
      };
      this.alone = () => {
        if (!isDone) {
          isDone = true;
          clock.clearTimer(timer);
          // Not held: the passing on whose answer is missing has released it. It was sent while the grant was ours.
          release().then(() => {
            resolve(true);
          }, reject);
        }
      };
      const timer = clock.setTimer(this.alone, patienceMs);
    });
  }
}

/** Of a request that gives up nothing. */
export const alreadyReleased: Promise<boolean> = Promise.resolve(true);
