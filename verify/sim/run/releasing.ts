import { LeaseLostError, type Lease } from "holdfast";

import type { Client } from "./client.ts";
import type { History } from "../judge/history.ts";
import type { Judge } from "../judge/judge.ts";
import type { Wants } from "../plan/acquire-options.ts";

/** How callers give their leases back, and what they must be told then. */
export class Releasing {
  readonly #history: History;
  readonly #judge: Judge;
  readonly #wants: Wants;
  readonly #trace: (line: string) => void;

  constructor(history: History, judge: Judge, wants: Wants, trace: (line: string) => void) {
    this.#history = history;
    this.#judge = judge;
    this.#wants = wants;
    this.#trace = trace;
  }

  /** @param mayEnd before its time: less was left of it than was asked for */
  async release({ index, process }: Client, lease: Lease, mayEnd: boolean): Promise<void> {
    const { fencingToken, validUntil } = lease;
    const leftMs = lease.remainingMs();
    const wallEnd = process.clock.wall() + leftMs; // the other clock stands still while the machine sleeps
    const isBroken = this.#history.breakOf(lease);
    const isExpectedToLast = (): boolean => !mayEnd && !isBroken();
    this.#trace(`client ${index} releases ${fencingToken} with ${leftMs.toFixed(1)} ms left`);
    if (leftMs === 0 && isExpectedToLast()) {
      this.#history.complain("release", `client ${index} lost ${fencingToken} before its release`);
    }
    this.#history.released(lease);
    this.#history.operations += 1;
    try {
      const wasOurs = await this.#releaseTwice(lease);
      const { clock } = process;
      const wasInTime = clock.now() < validUntil && clock.wall() < wallEnd; // else it had expired when the engine came to it
      if (wasOurs && leftMs === 0) {
        this.#history.fail("release", `${fencingToken} was lost, and its release says it was not`);
      } else if (!wasOurs && leftMs > 0 && wasInTime && isExpectedToLast()) {
        this.#history.refusesRelease(lease, `client ${index} lost ${fencingToken} in its release`);
      }
    } catch (error) {
      this.#judge.told(error, []);
    }
    this.isOver(lease);
  }

  /** Looks whether it may still be used. */
  isOver(lease: Lease): void {
    let isUsable = lease.remainingMs() > 0;
    try {
      lease.throwIfLost();
      isUsable = true;
    } catch (error) {
      isUsable ||= !(error instanceof LeaseLostError);
    }
    if (isUsable) {
      this.#history.fail("release", `${lease.fencingToken} was given back and may still be used`);
    }
  }

  async #releaseTwice(lease: Lease): Promise<boolean> {
    const wasOurs = await this.#wants.giveBack(lease);
    // Who resigned is not helped by a release of the term.
    if (!this.#wants.isTerm(lease) && (await lease.release()) !== wasOurs) {
      this.#history.fail("release", `a second release of ${lease.fencingToken} answers otherwise`);
    }
    return wasOurs;
  }
}
