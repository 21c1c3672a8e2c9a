import { isLockError, type Holder } from "holdfast";
import { oncePerFire, type OncePerFireOptions } from "holdfast/cron";
import { afterEach, expect, test } from "vitest";

import { clock, onManualClock, open } from "../support/lease-fixture.ts";

onManualClock();

const keepMs = 10_000;

afterEach(() => clock.advance(2 * keepMs)); // kept keys expire

test("a job receives its lease and the arguments of the scheduler, and the other process skips the fire", async () => {
  const received: unknown[] = [];
  const skipped: (Holder | undefined)[] = [];
  const work = (lease: { key: string }, at: Date, index: number): number =>
    received.push([lease.key, at, index]);
  const options: OncePerFireOptions = {
    keepMs,
    reason: "nightly",
    onSkipped: (holder) => skipped.push(holder),
  };
  const [here, there] = [open(), open()].map((locks) => oncePerFire(locks, "k", options, work));
  const at = new Date(0);
  await here?.(at, 1);
  await clock.advance(600);
  await there?.(at, 2);
  expect(received).toEqual([["k", at, 1]]);
  expect(skipped).toMatchObject([{ reason: "nightly" }]);
  await clock.advance(keepMs - 600);
  await there?.(at, 3);
  expect(received).toHaveLength(2);
});

test("the error of a job goes to the scheduler or to `onError`, and frees the key", async () => {
  const [locks, errors] = [open(), [] as unknown[]];
  const fail = (): never => {
    throw new Error("no disk");
  };
  await expect(oncePerFire(locks, "k", { keepMs }, fail)()).rejects.toThrow("no disk");
  await oncePerFire(locks, "k", { keepMs, onError: (error) => errors.push(error) }, fail)();
  expect(errors).toMatchObject([{ message: "no disk" }]);
});

test("a loss is an error after the work, with the value of the work", async () => {
  const [locks, others] = [open(), open()];
  const errors: unknown[] = [];
  await oncePerFire(locks, "k", { keepMs, onError: (error) => errors.push(error) }, async (lease) => {
    await others.admin.breakLock("k", { fencingToken: lease.fencingToken, reason: "test" });
    return 7;
  })();
  expect(errors.map((error) => isLockError(error, "lease-lost") && [error.reason, error.result])).toEqual([
    ["broken", 7],
  ]);
});

test.each([
  [{}, "Expected `keepMs` to be an integer"],
  [{ keepMs, ifCrashed: "retry" }, 'Expected `ifCrashed` to be "free" or "keep"'],
  [{ keepMs, attemptId: "a" }, "attemptId"],
  [{ keepMs, minHoldMs: 1 }, "minHoldMs"],
  [{ keepMs, keepMS: 1 }, "keepMS"],
  [{ keepMs, onSkipped: true }, "Expected `onSkipped` to be a function, got true (boolean)"],
  [{ keepMs, onError: {} }, "Expected `onError` to be a function"],
  [undefined, "Expected `options` to be an object"],
])("%o is refused before the first fire", (options, message) => {
  expect(() => oncePerFire(open(), "k", options as unknown as OncePerFireOptions, () => 1)).toThrow(message);
});
