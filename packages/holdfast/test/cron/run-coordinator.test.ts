import { isLockError } from "holdfast";
import { runCoordinator } from "holdfast/cron";
import { afterEach, expect, test } from "vitest";

import { clock, onManualClock, open, settled } from "../support/lease-fixture.ts";

onManualClock();

const keepMs = 10_000;
const ttlMs = 2_000;
const date = new Date("2026-11-26T03:00:00.000Z");
const fire = `nightly:${date.toISOString()}`;
const context = { date, task: { name: "nightly" } };

afterEach(() => clock.advance(2 * keepMs)); // kept keys expire

test("a run is renewed while it lasts, and its key stays held until the time to keep it", async () => {
  const [locks, others] = [open(), open()];
  const [here, there] = [runCoordinator(locks, { keepMs }), runCoordinator(others, { keepMs })];
  expect(await here.shouldRun(fire, ttlMs)).toBe(true);
  expect(here.leaseOf(context)?.fencingToken).toBeGreaterThan(0n);
  await clock.advance(2 * ttlMs);
  expect(await there.shouldRun(fire, ttlMs)).toBe(false);
  expect(there.leaseOf(context)).toBe(undefined);
  await settled(here.onComplete(fire));
  expect(here.leaseOf(context)).toBe(undefined);
  await clock.advance(keepMs - 2 * ttlMs - 1);
  expect(await there.shouldRun(fire, ttlMs)).toBe(false);
  await clock.advance(1);
  expect(await there.shouldRun(fire, ttlMs)).toBe(true);
  await there.onComplete(fire);
});

test("the next fire runs, although the key of the last one is still held", async () => {
  const coordinator = runCoordinator(open(), { keepMs });
  expect(await coordinator.shouldRun(fire, ttlMs)).toBe(true);
  expect(await coordinator.shouldRun(`${fire}+`, ttlMs)).toBe(true);
  expect(await coordinator.shouldRun(fire, ttlMs)).toBe(false);
  await Promise.all([coordinator.onComplete(fire), coordinator.onComplete(`${fire}+`)]);
});

test("a loss during the run aborts its signal, and the completion rejects", async () => {
  const [locks, others] = [open(), open()];
  const coordinator = runCoordinator(locks, { keepMs });
  await coordinator.shouldRun(fire, ttlMs);
  const lease = coordinator.leaseOf(context);
  await others.admin.breakLock(fire, { fencingToken: lease?.fencingToken as bigint, reason: "test" });
  await clock.advance(ttlMs);
  expect(lease?.signal.aborted).toBe(true);
  const error: unknown = await coordinator.onComplete(fire).catch((caught: unknown) => caught);
  expect(isLockError(error, "lease-lost") && error.reason).toBe("broken");
});

test("a run of a closed `Locks` is an error, so that node-cron skips the fire", async () => {
  const locks = open();
  const coordinator = runCoordinator(locks);
  await locks.close();
  await expect(coordinator.shouldRun(fire, ttlMs)).rejects.toMatchObject({ code: "closed" });
  await coordinator.onComplete(fire);
});

test("invalid options are refused at once, and an invalid lease of node-cron at the fire", async () => {
  const locks = open();
  expect(() => runCoordinator(locks, { keepMs: 99 })).toThrow("Expected `keepMs` to be an integer");
  expect(() => runCoordinator(locks, { ttlMs } as object)).toThrow("Expected no `ttlMs`");
  await expect(runCoordinator(locks).shouldRun(fire, 1)).rejects.toThrow("Expected `ttlMs` to be an integer");
});
