import { createLocks, type Driver, type Locks } from "holdfast";

import type { ProcessMachine } from "./process-machine.ts";
import type { ClientSetup, Use } from "../plan/schedule.ts";

/** One `Locks`, and the program that uses it. */
export class Client {
  readonly index: number;
  readonly process: ProcessMachine;
  readonly locks: Locks;
  /** Its callers wait in a line of their own, and hand leases on in memory. */
  readonly handover: boolean;
  /** What its callers asked for and have not given back. */
  readonly uses: Set<Pick<Use, "key" | "ttlMs">> = new Set();
  /** Of what they have asked for so far. */
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

  /** What the program does next. */
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

  /** From now on its callers do not linger. */
  endPauses(): void {
    this.#isHurried = true;
    for (const end of this.#pauses) {
      end();
    }
    this.#pauses.clear();
  }
}
