import { manualClock, manualRandom, type ManualClock } from "holdfast/testing";
import { beforeEach, expect, test } from "vitest";

import { instantNow } from "../../src/runtime/clock.ts";
import type { ExtendResult } from "../../src/driver.ts";
import { grantWith } from "../support/watchdog-fixture.ts";
import { validFrom } from "../../src/validity.ts";
import { Watchdog, type Renewable, type WatchedLease } from "../../src/lease/watchdog.ts";

const ttlMs = 3_000;
/** 3 000 ms less the drift of 32 ms. */
const endMs = 2_968;
/** If no timer has been late, the loss is declared 2 ms before the end. */
const lossMs = endMs - 2;
const firstRenewalMs = endMs - 2_000;

let clock: ManualClock;
let watchdog: Watchdog;

beforeEach(() => {
  clock = manualClock();
  watchdog = new Watchdog(clock, manualRandom(1));
});

interface Watched {
  readonly watch: WatchedLease;
  readonly renewals: readonly number[];
  readonly losses: readonly [at: number, reason: string][];
}

const failing = async (): Promise<ExtendResult> => ({ outcome: "unknown", error: "away" });

/** A lease with only the members that the watchdog uses. `renew` stands for the engine. */
function watched(renew: () => Promise<ExtendResult>, more: Partial<Renewable> = {}): Watched {
  const renewals: number[] = [];
  const losses: [number, string][] = [];
  const validity = validFrom(instantNow(clock), ttlMs);
  const target: Renewable = {
    key: "k",
    ttlMs,
    validity,
    grant: grantWith(validity),
    fencingToken: 1n,
    needsRenewal: true,
    isClaim: false,
    reportAt: Infinity,
    endsAt: Infinity,
    isLeaseReferenced: () => true,
    renew: () => {
      renewals.push(clock.now());
      return renew();
    },
    claimConfirmed: () => expect.unreachable(),
    markLost: (reason) => losses.push([clock.now(), reason]),
    reportLeak: () => expect.unreachable(),
    facts: () => expect.unreachable(),
    ...more,
  };
  return { watch: watchdog.watch(target), renewals, losses };
}

/** Makes one timer run late by `byMs`, by means of a short lease that has ended afterwards. */
async function timerRunsLate(byMs: number): Promise<void> {
  watched(failing, { endsAt: clock.now() + 100 });
  clock.block(100 + byMs);
  await clock.advance(0);
}

test("after late timers the loss is declared earlier by the worst lateness and 2 ms", async () => {
  await timerRunsLate(20);
  await timerRunsLate(7);
  const begun = clock.now();
  const target = watched(failing);
  await clock.advance(ttlMs);
  expect(target.losses.map(([at, reason]) => [at - begun, reason])).toEqual([
    [lossMs - 20, "engine-unreachable"],
  ]);
});

test("a loss that is declared early is no suspension", async () => {
  await timerRunsLate(100);
  const target = watched(failing, { needsRenewal: false });
  await clock.advance(ttlMs);
  expect(target.losses.map(([, reason]) => reason)).toEqual(["expired"]);
});

test("a renewal that is confirmed with less validity than the lead is a loss before any timer", async () => {
  await timerRunsLate(30);
  let answer = (): void => undefined;
  const target = watched(
    () =>
      new Promise((resolve) => {
        const validity = validFrom(instantNow(clock), ttlMs);
        answer = () => {
          resolve({ outcome: "extended", validity });
        };
      }),
  );
  await clock.advance(firstRenewalMs);
  clock.block(endMs - 31);
  answer();
  for (let turn = 0; turn < 10; turn += 1) {
    await Promise.resolve();
  }
  expect(target.losses.map(([, reason]) => reason)).toEqual(["expired"]);
});

test("rescheduling a lease with an overdue renewal records no late timer", async () => {
  await clock.advance(10_000);
  const claim = watched(failing, { isClaim: true });
  watchdog.reschedule(claim.watch);
  await clock.advance(0);
  expect(claim.renewals).toEqual([10_000]);
  const target = watched(failing);
  await clock.advance(ttlMs);
  expect(target.losses.map(([at]) => Math.round(at))).toEqual([10_000 + lossMs]);
});
