import { manualClock, manualRandom, type ManualClock } from "holdfast/testing";
import { beforeEach } from "vitest";

import { instantNow } from "../../src/runtime/clock.ts";
import type { LeaseFacts } from "../../src/diagnostics.ts";
import type { ExtendResult, Grant } from "../../src/driver.ts";
import { validFrom, type Validity } from "../../src/validity.ts";
import { Watchdog, type Renewable, type WatchedLease } from "../../src/lease/watchdog.ts";

export const ttlMs = 3_000;
/** 3 000 ms less the drift of 32 ms. */
export const endMs = 2_968;
/** If no timer has been late, the loss is declared 2 ms before the end. */
export const lossMs = endMs - 2;
export const firstRenewalMs = endMs - 2_000;

export let clock: ManualClock;
export let watchdog: Watchdog;

/** A watchdog and a manual clock for each test of the file. */
export function onWatchdog(): void {
  beforeEach(() => {
    clock = manualClock();
    watchdog = new Watchdog(clock, manualRandom(1));
  });
}

/** A lease with only the members that the watchdog uses. `renew` stands for the engine. */
export class Target implements Renewable {
  readonly key = "k";
  readonly ttlMs: number = ttlMs;
  readonly validity: Validity = validFrom(instantNow(clock), ttlMs);
  readonly fencingToken = 1n;
  readonly grant: Grant = grantWith(this.validity);
  needsRenewal = true;
  isClaim = false;
  reportAt = Infinity;
  endsAt = Infinity;
  isKept = true;
  readonly renewals: number[] = [];
  readonly losses: [at: number, reason: string, cause?: unknown][] = [];
  readonly leaks: number[] = [];
  confirmations = 0;
  readonly #engine: (attempt: number) => Promise<ExtendResult>;

  constructor(engine: (attempt: number) => Promise<ExtendResult>) {
    this.#engine = engine;
  }

  isLeaseReferenced(): boolean {
    return this.isKept;
  }

  facts(): LeaseFacts {
    return { key: "k", instance: 1, engine: "memory", kind: "mutex", mode: "exclusive", fencingToken: 1n };
  }

  renew(): Promise<ExtendResult> {
    this.renewals.push(clock.now());
    return this.#engine(this.renewals.length);
  }

  claimConfirmed(): void {
    this.confirmations += 1;
    this.isClaim = false;
  }

  markLost(reason: string, cause?: unknown): void {
    this.losses.push([clock.now(), reason, cause]);
  }

  reportLeak(): void {
    this.needsRenewal = false;
    this.leaks.push(clock.now());
  }
}

export function grantWith(validity: Validity): Grant {
  return { key: "k", token: "token", fencingToken: 1n, fencingCount: 1, validity, isClaim: false };
}

export const renewingFor = (ms: number) => async (): Promise<ExtendResult> => ({
  outcome: "extended",
  validity: validFrom(instantNow(clock), ms),
});
export const renewing = renewingFor(ttlMs);
export const hanging = (): Promise<ExtendResult> => new Promise(() => undefined);
export const failing = async (attempt: number): Promise<ExtendResult> => ({
  outcome: "unknown",
  error: `error ${attempt}`,
});

export function watched(
  engine: (attempt: number) => Promise<ExtendResult>,
  more: Partial<Target> = {},
): Target & { watch: WatchedLease } {
  const target = Object.assign(new Target(engine), more);
  return Object.assign(target, { watch: watchdog.watch(target) });
}
