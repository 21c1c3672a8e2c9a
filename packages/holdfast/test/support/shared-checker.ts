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

/** Checks what was promised of a lock that several may hold. */
export class SharedLockChecker {
  readonly #kind: SharedKind;
  readonly #requests: readonly PlayedRequest[];
  readonly #isFaultFree: boolean;
  readonly #allowsHandover: boolean;
  #limit: number;
  /** The largest limit of this step. */
  #limitOfStep: number;
  /** A limit is forgotten where nobody holds or waits: the next request brings the one that it names, perhaps an earlier one. */
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

  /** To be called in the turn of the grant. */
  granted(request: PlayedRequest, lease: Lease): void {
    const living = this.#living();
    if (living.length === 1) {
      this.#limitAfterIdle = request.limit;
    }
    const weights = living.reduce((sum, { weight }) => sum + weight, 0);
    expect(weights, "never more than the limit at once").toBeLessThanOrEqual(
      // A run of hand-overs goes on behind a lowered limit.
      Math.max(
        this.#limit,
        this.#limitOfStep,
        this.#limitAfterIdle,
        this.#allowsHandover ? request.limit : 0,
      ),
    );
    expect(lease.remainingMs(), "nobody is given what is over").toBeGreaterThan(0);
    if (!this.#allowsHandover) {
      expect(lease.fencingToken, "numbers rise").toBeGreaterThan(request.floor);
    }
    const sameNumber = this.#requests.filter((other) => other.lease?.fencingToken === lease.fencingToken);
    expect(sameNumber, "each lease has a number of its own").toEqual([request]);
    for (const other of this.#requests) {
      const conflicts = other.weight + request.weight > Math.max(...this.#kind.limits);
      if (other.lease && other !== request && conflicts) {
        expect(lease.fencingToken, "numbers rise in the order of grants").toBeGreaterThan(
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

  /** Nobody who came earlier still waits when somebody who came later was granted in this step. */
  expectNobodyPassedOver(step: number): void {
    const newest = this.#requests.filter(({ grantedIn }) => grantedIn === step);
    const waiting = this.#requests.filter(({ state, waits }) => state === "waiting" && waits);
    for (const { id } of this.#isFaultFree && !this.#allowsHandover ? newest : []) {
      const passed = waiting.filter((other) => other.id < id && !other.wasImpossible);
      expect(passed, "nobody is passed over").toEqual([]);
    }
  }

  /** In memory every moment is exact. */
  async compare(model: SharedLockModel, observer: Locks): Promise<void> {
    const waiting = this.#requests.filter(({ state }) => state === "waiting").map(({ id }) => id);
    expect(waiting, "those who wait").toEqual(model.waiters);
    const { holders, waiterCount } = await observer.inspect(key);
    const ids = holders.map(
      ({ fencingToken }) => this.#requests.find(({ lease }) => lease?.fencingToken === fencingToken)?.id,
    );
    expect(
      ids.sort((a = 0, b = 0) => a - b),
      "those who hold",
    ).toEqual(model.holders);
    expect(waiterCount).toBe(waiting.length);
  }

  #living(): PlayedRequest[] {
    return this.#requests.filter(
      ({ lease, isBroken }) => !isBroken && lease !== undefined && lease.remainingMs() > 0,
    );
  }
}
