import { isLockError, type Lease, type Locks } from "holdfast";
import { expect } from "vitest";

import type { SharedLockModel } from "./shared-model.ts";
import type { PlayedRequest } from "./shared-request.ts";
import { key, type SharedKind } from "./shared-steps.ts";

interface CheckerOptions {
  readonly kind: SharedKind;
  readonly requests: readonly PlayedRequest[];
  readonly isFaultFree: boolean;
  readonly allowsHandover: boolean;
}

/** Checks the guarantees of a lock with several holders. */
export class SharedLockChecker {
  readonly #kind: SharedKind;
  readonly #requests: readonly PlayedRequest[];
  readonly #isFaultFree: boolean;
  readonly #allowsHandover: boolean;
  #limit: number;
  /** The largest limit of this step. */
  #limitOfStep: number;
  /** Without holders and waiters the engine drops the limit. The next request sets its own limit, perhaps an earlier one. */
  #limitAfterIdle = 0;
  #largest = 0n;

  constructor({ kind, requests, isFaultFree, allowsHandover }: CheckerOptions) {
    this.#kind = kind;
    this.#requests = requests;
    this.#isFaultFree = isFaultFree;
    this.#allowsHandover = allowsHandover;
    this.#limit = kind.limit;
    this.#limitOfStep = kind.limit;
  }

  get limit(): number {
    return this.#limit;
  }

  get largest(): bigint {
    return this.#largest;
  }

  beginStep(): void {
    this.#limitOfStep = this.#limit;
  }

  setLimit(limit: number): void {
    this.#limit = limit;
    this.#limitAfterIdle = 0;
  }

  /** Call it in the same turn of the event loop as the grant. */
  granted(request: PlayedRequest, lease: Lease): void {
    const living = this.#living();
    if (living.length === 1) {
      this.#limitAfterIdle = request.limit;
    }
    const weights = living.reduce((sum, { weight }) => sum + weight, 0);
    expect(weights, "the limit is not exceeded").toBeLessThanOrEqual(
      // A run of hand-overs continues under its old limit after the limit is lowered.
      Math.max(
        this.#limit,
        this.#limitOfStep,
        this.#limitAfterIdle,
        this.#allowsHandover ? request.limit : 0,
      ),
    );
    expect(lease.remainingMs(), "no expired lease is granted").toBeGreaterThan(0);
    if (!this.#allowsHandover) {
      expect(lease.fencingToken, "fencing tokens rise").toBeGreaterThan(request.floor);
    }
    const sameNumber = this.#requests.filter((other) => other.lease?.fencingToken === lease.fencingToken);
    expect(sameNumber, "each lease has its own fencing token").toEqual([request]);
    for (const other of this.#requests) {
      const conflicts = other.weight + request.weight > Math.max(...this.#kind.limits);
      if (other.lease && other !== request && conflicts) {
        expect(lease.fencingToken, "fencing tokens rise in the order of grants").toBeGreaterThan(
          other.lease.fencingToken,
        );
      }
    }
    this.#largest = lease.fencingToken > this.#largest ? lease.fencingToken : this.#largest;
  }

  expectRefusal(error: unknown): void {
    const isExpected =
      error === "enough" ||
      isLockError(error, "wait-timeout") ||
      isLockError(error, "closed") ||
      isLockError(error, "limit-mismatch") ||
      (!this.#isFaultFree && isLockError(error, "engine-unavailable"));
    if (!isExpected) {
      throw error;
    }
  }

  /** No earlier waiter still waits after a later waiter was granted in this step. */
  expectArrivalOrder(step: number): void {
    const newest = this.#requests.filter(({ grantedIn }) => grantedIn === step);
    const waiting = this.#requests.filter(({ state, waits }) => state === "waiting" && waits);
    for (const { id } of this.#isFaultFree && !this.#allowsHandover ? newest : []) {
      const passed = waiting.filter((other) => other.id < id && !other.wasImpossible);
      expect(passed, "no waiter is skipped").toEqual([]);
    }
  }

  /** In memory every time is exact, so holders and waiters must agree with the model. */
  async compare(model: SharedLockModel, observer: Locks): Promise<void> {
    const waiting = this.#requests.filter(({ state }) => state === "waiting").map(({ id }) => id);
    expect(waiting, "the waiters").toEqual(model.waiters);
    const { holders, waiterCount } = await observer.inspect(key);
    const ids = holders.map(
      ({ fencingToken }) => this.#requests.find(({ lease }) => lease?.fencingToken === fencingToken)?.id,
    );
    expect(
      ids.sort((a = 0, b = 0) => a - b),
      "the holders",
    ).toEqual(model.holders);
    expect(waiterCount).toBe(waiting.length);
  }

  #living(): PlayedRequest[] {
    return this.#requests.filter(
      ({ lease, isBroken }) => !isBroken && lease !== undefined && lease.remainingMs() > 0,
    );
  }
}
