import { LeaseLostError, type Lease } from "holdfast";

import type { Client } from "./client.ts";
import type { History } from "../judge/history.ts";
import type { CallJudge } from "../judge/judge.ts";
import type { AcquireSpecs } from "../plan/acquire-options.ts";

/** How callers give their leases back, and what they must be told then. */
export class LeaseRelease {
  readonly #history: History;
  readonly #judge: CallJudge;
  readonly #acquireSpecs: AcquireSpecs;
  readonly #trace: (line: string) => void;

  constructor(history: History, judge: CallJudge, acquireSpecs: AcquireSpecs, trace: (line: string) => void) {
    this.#history = history;
    this.#judge = judge;
    this.#acquireSpecs = acquireSpecs;
    this.#trace = trace;
  }

  /** @param mayExpire before its time: less was left of it than was asked for */
  async release({ index, process }: Client, lease: Lease, mayExpire: boolean): Promise<void> {
    const { fencingToken, validUntil } = lease;
    const leftMs = lease.remainingMs();
    const wallEnd = process.clock.wall() + leftMs; // the other clock stands still while the machine sleeps
    const isBroken = this.#history.operator.breakOf(lease);
    const isExpectedToLast = (): boolean => !mayExpire && !isBroken();
    this.#trace(`client ${index} releases ${fencingToken} with ${leftMs.toFixed(1)} ms left`);
    if (leftMs === 0 && isExpectedToLast()) {
      this.#history.failUnlessFaulty("release", `client ${index} lost ${fencingToken} before its release`);
    }
    this.#history.released(lease);
    this.#history.operations += 1;
    try {
      const wasHeld = await this.#releaseTwice(lease);
      const { clock } = process;
      const wasInTime = clock.now() < validUntil && clock.wall() < wallEnd; // else it had expired when the engine came to it
      if (wasHeld && leftMs === 0) {
        this.#history.fail("release", `${fencingToken} was lost, and its release says it was not`);
      } else if (!wasHeld && leftMs > 0 && wasInTime && isExpectedToLast()) {
        this.#history.releaseRefused(lease, `client ${index} lost ${fencingToken} in its release`);
      }
    } catch (error) {
      this.#judge.errorReported(error, []);
    }
    this.isExpired(lease);
  }

  /** Looks whether it may still be used. */
  isExpired(lease: Lease): void {
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
    const wasHeld = await this.#acquireSpecs.release(lease);
    // Who resigned is not helped by a release of the term.
    if (!this.#acquireSpecs.isLeadership(lease) && (await lease.release()) !== wasHeld) {
      this.#history.fail("release", `a second release of ${lease.fencingToken} answers otherwise`);
    }
    return wasHeld;
  }
}
