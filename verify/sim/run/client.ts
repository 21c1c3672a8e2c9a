import { createLocks, type Driver, type Locks } from "holdfast";

import type { ProcessMachine } from "./process-machine.ts";
import type { ClientSetup, Use } from "../plan/schedule.ts";

/** One `Locks` object, and the program that uses the object. */
export class Client {
  readonly index: number;
  readonly process: ProcessMachine;
  readonly locks: Locks;
  /** Callers wait in a local queue, and leases are handed over in memory. */
  readonly handover: boolean;
  /** The uses whose lease is requested or not yet released. */
  readonly uses: Set<Pick<Use, "key" | "ttlMs">> = new Set();
  /** The longest TTL of all requests so far. */
  longestTtlMs = 0;
  readonly #pauses = new Set<() => void>();
  #isHurried = false;

  constructor(index: number, process: ProcessMachine, { handover }: ClientSetup, driver: Driver) {
    this.index = index;
    this.process = process;
    this.handover = handover;
    const owner = `client ${index}`;
    this.locks = createLocks(driver, handover ? { owner } : { owner, handover: false });
  }

  get isDead(): boolean {
    return this.process.isDead;
  }

  /** Waits before the next step of the program. */
  pause(ms: number): Promise<void> {
    const { clock } = this.process;
    return new Promise((resolve) => {
      if (this.#isHurried) {
        resolve();
        return;
      }
      const timer = clock.setTimer(() => {
        this.#pauses.delete(end);
        resolve();
      }, ms);
      const end = (): void => {
        clock.clearTimer(timer);
        resolve();
      };
      this.#pauses.add(end);
    });
  }

  /** From now on callers do not pause. */
  endPauses(): void {
    this.#isHurried = true;
    for (const end of this.#pauses) {
      end();
    }
    this.#pauses.clear();
  }
}
