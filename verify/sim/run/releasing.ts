import { LeaseLostError, type Lease } from "holdfast";

import type { Client } from "./client.ts";
import type { History } from "../judge/history.ts";
import type { CallJudge } from "../judge/judge.ts";
import type { AcquireSpecs } from "../plan/acquire-options.ts";

/** Releases the leases of callers, and checks the results. */
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

  /** @param mayExpire the lease may expire early, because its remaining time was shorter than its TTL */
  async release({ index, process }: Client, lease: Lease, mayExpire: boolean): Promise<void> {
    const { fencingToken, validUntil } = lease;
    const leftMs = lease.remainingMs();
    const wallEnd = process.clock.wall() + leftMs; // the monotonic clock stands still while the machine sleeps
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
      const wasInTime = clock.now() < validUntil && clock.wall() < wallEnd; // otherwise the grant had expired before the engine executed the release
      if (wasHeld && leftMs === 0) {
        this.#history.fail("release", `the release of the lost lease ${fencingToken} returned true`);
      } else if (!wasHeld && leftMs > 0 && wasInTime && isExpectedToLast()) {
        this.#history.releaseRefused(lease, `client ${index} lost ${fencingToken} during its release`);
      }
    } catch (error) {
      this.#judge.errorReported(error, []);
    }
    this.checkUnusable(lease);
  }

  /** Checks that the released lease is unusable. */
  checkUnusable(lease: Lease): void {
    let isUsable = lease.remainingMs() > 0;
    try {
      lease.throwIfLost();
      isUsable = true;
    } catch (error) {
      isUsable ||= !(error instanceof LeaseLostError);
    }
    if (isUsable) {
      this.#history.fail("release", `the released lease ${lease.fencingToken} is still usable`);
    }
  }

  async #releaseTwice(lease: Lease): Promise<boolean> {
    const wasHeld = await this.#acquireSpecs.release(lease);
    // A leader has resigned from its term, so a second release of the lease proves nothing.
    if (!this.#acquireSpecs.isLeadership(lease) && (await lease.release()) !== wasHeld) {
      this.#history.fail(
        "release",
        `the second release of ${lease.fencingToken} returned another result than the first`,
      );
    }
    return wasHeld;
  }
}
