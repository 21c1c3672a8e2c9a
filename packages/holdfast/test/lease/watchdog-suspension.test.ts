import { expect, test } from "vitest";

import { instantNow } from "../../src/runtime/clock.ts";
import type { ExtendResult } from "../../src/driver.ts";
import { extendValidity, validFrom } from "../../src/validity.ts";
import {
  clock,
  endMs,
  hanging,
  onWatchdog,
  renewing,
  renewingFor,
  ttlMs,
  watchdog,
  watched,
  type Target,
} from "../support/watchdog-fixture.ts";

onWatchdog();

test("after a sleep longer than its validity a lease is lost within a second, though no renewal is due", async () => {
  const target = watched(renewing, { needsRenewal: false });
  await clock.advance(100);
  clock.sleep(10_000);
  await clock.advance(1_000);
  expect(target.losses).toEqual([[expect.any(Number), "suspended", undefined]]);
  expect(target.losses[0]?.[0]).toBeLessThanOrEqual(1_100);
  expect(target.confirmations).toBe(0);
});

/** A TTL of 30 s, of which 9.6 s remain after an early sleep of 20 s. */
const long = 30_000;
const leftAfterSleepMs = long - 302 - 100 - 20_000;

async function sleptThrough(engine: (attempt: number) => Promise<ExtendResult>): Promise<Target> {
  const target = watched(engine, { ttlMs: long, validity: validFrom(instantNow(clock), long) });
  await clock.advance(100);
  clock.sleep(20_000);
  return target;
}

test("a lease that began with a slow wall clock is lost within a second after the clock's correction", async () => {
  watched(renewing);
  await clock.advance(100);
  clock.jumpWall(-40_000);
  const target = watched(renewing, {
    ttlMs: long,
    validity: validFrom(instantNow(clock), long),
    needsRenewal: false,
  });
  await clock.advance(100);
  clock.jumpWall(40_000);
  await clock.advance(1_000);
  expect(target.losses).toEqual([[expect.any(Number), "suspended", undefined]]);
});

test("a lease that outlives a sleep is lost when it ends by the wall clock", async () => {
  const target = await sleptThrough(hanging);
  target.needsRenewal = false;
  await clock.advance(leftAfterSleepMs - 51); // the clock check ignores a lead of up to 50 ms
  expect(target.losses).toEqual([]);
  await clock.advance(1_001);
  expect(target.losses).toEqual([[expect.any(Number), "suspended", undefined]]);
});

test("after a sleep of more than a third of the TTL a lease is renewed within a second, and stays valid", async () => {
  const target = await sleptThrough(renewingFor(long));
  await clock.advance(1_000);
  expect(target.confirmations).toBe(1);
  await clock.advance(2 * long);
  expect(target.losses).toEqual([]);
});

test("an extended lease is renewed once after a jump of the wall clock, and not repeatedly", async () => {
  const target = watched(renewing);
  await clock.advance(500);
  extendValidity(target.validity, validFrom(instantNow(clock), 2 * ttlMs), clock);
  watchdog.reschedule(target.watch);
  clock.jumpWall(4_000);
  await clock.advance(1_000);
  expect(target.renewals.length).toBe(1);
  expect(target.losses).toEqual([]);
});

test("small corrections of the wall clock, and any step backwards, lose nothing", async () => {
  const target = watched(renewing);
  for (const step of [40, -40, -60_000, 30]) {
    clock.jumpWall(step);
    await clock.advance(1_500);
  }
  expect(target.losses).toEqual([]);
  expect(target.renewals.length).toBeGreaterThanOrEqual(6);
});

test("a rounded or slewed wall clock does not turn an ordinary expiry into a suspension", async () => {
  const target = watched(renewing, { needsRenewal: false });
  clock.jumpWall(15);
  await clock.advance(endMs);
  expect(target.losses.map(([, reason]) => reason)).toEqual(["expired"]);
});
