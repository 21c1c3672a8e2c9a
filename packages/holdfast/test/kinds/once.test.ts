import { isLockError, type OnceOptions } from "holdfast";
import { afterEach, expect, test } from "vitest";

import { clock, engine, onManualClock, open, settled, ttlMs } from "../support/lease-fixture.ts";

onManualClock();

const keepMs = 10_000;

afterEach(() => clock.advance(2 * keepMs)); // kept keys expire

test("work runs once in the period, also if it is short, and the next period runs it again", async () => {
  const [here, there] = [open(), open()];
  expect(await here.once("k", { keepMs, reason: "nightly" }, () => "done")).toEqual({
    ran: true,
    value: "done",
  });
  await clock.advance(600);
  const second = await there.once("k", { keepMs }, () => "again");
  expect(second).toMatchObject({ ran: false, holder: { reason: "nightly" } });
  expect(await here.once("k", { keepMs }, () => "again")).toMatchObject({ ran: false });
  await clock.advance(keepMs - 601);
  expect(await there.once("k", { keepMs }, () => "again")).toMatchObject({ ran: false });
  await clock.advance(1);
  expect(await there.once("k", { keepMs }, () => "again")).toEqual({ ran: true, value: "again" });
});

test("work that outlasts the period is not run beside, and releases the key at its end", async () => {
  const [here, there] = [open(), open()];
  let finish = (): void => undefined;
  const running = here.once(
    "k",
    { keepMs, ttlMs: 1_000 },
    () => new Promise<void>((resolve) => (finish = resolve)),
  );
  await clock.advance(3 * keepMs);
  expect(await there.once("k", { keepMs }, () => 1)).toMatchObject({ ran: false });
  finish();
  expect(await running).toMatchObject({ ran: true });
  expect(await there.once("k", { keepMs }, () => 1)).toEqual({ ran: true, value: 1 });
});

test("work that throws frees the key at once, and its error is rethrown", async () => {
  const [here, there] = [open(), open()];
  await expect(
    here.once("k", { keepMs, ifCrashed: "keep" }, () => Promise.reject(new Error("no disk"))),
  ).rejects.toThrow("no disk");
  expect(await there.once("k", { keepMs }, () => 1)).toEqual({ ran: true, value: 1 });
});

test.each([
  ["free", 2_000, true],
  ["free", 1_999, false],
  ["keep", 10_000, true],
  ["keep", 9_999, false],
] as const)(
  "after a crash with ifCrashed %s the work runs again after %d ms: %s",
  async (ifCrashed, afterMs, runs) => {
    const crashed = open();
    void crashed
      .once("k", { keepMs, ttlMs: 2_000, ifCrashed, renew: false }, () => new Promise(() => undefined))
      .catch(() => undefined);
    await clock.advance(afterMs);
    expect((await open().once("k", { keepMs }, () => 1)).ran).toBe(runs);
  },
);

test.each([
  [5_000, 10_000],
  [9_999, 12_000],
  [60_000, 62_000],
])(
  "after a crash at %d ms of renewed work ifCrashed keep frees the key by %d ms",
  async (crashMs, freeMs) => {
    let isCrashed = false;
    const extend = engine.extend.bind(engine);
    const crashing = open({
      extend: (request) => (isCrashed ? new Promise(() => undefined) : extend(request)),
    });
    void crashing
      .once("k", { keepMs, ttlMs: 2_000, ifCrashed: "keep" }, () => new Promise(() => undefined))
      .catch(() => undefined);
    await clock.advance(Math.min(crashMs, keepMs - 1));
    expect((await open().once("k", { keepMs }, () => 1)).ran).toBe(false);
    await clock.advance(crashMs - Math.min(crashMs, keepMs - 1));
    isCrashed = true;
    await clock.advance(freeMs - crashMs);
    expect((await open().once("k", { keepMs }, () => 1)).ran).toBe(true);
  },
);

test("the end of the process does not free the key before its time", async () => {
  const [here, there] = [open(), open()];
  await here.once("k", { keepMs, ttlMs: 500 }, () => 1);
  await here.close();
  await clock.advance(keepMs - 1);
  expect(await there.once("k", { keepMs }, () => 1)).toMatchObject({ ran: false });
  await clock.advance(1);
  expect(await there.once("k", { keepMs }, () => 1)).toMatchObject({ ran: true });
});

test("a key that an operator frees during the period may run again", async () => {
  const [here, there] = [open(), open()];
  await here.once("k", { keepMs }, () => 1);
  const [holder] = (await there.inspect("k")).holders;
  await there.admin.breakLock("k", { fencingToken: holder?.fencingToken as bigint, reason: "run it again" });
  expect(await there.once("k", { keepMs }, () => 2)).toEqual({ ran: true, value: 2 });
});

test("a loss during the work rejects with the value of the work", async () => {
  const [here, there] = [open(), open()];
  const running = here.once("k", { keepMs }, async (lease) => {
    await there.admin.breakLock("k", { fencingToken: lease.fencingToken, reason: "test" });
    return 7;
  });
  const error = await running.catch((caught: unknown) => caught);
  expect(isLockError(error, "lease-lost") && [error.reason, error.result]).toEqual(["broken", 7]);
});

test("the same key inside its own work is a self-deadlock", async () => {
  const locks = open();
  const inner = locks.once("k", { keepMs }, () => locks.once("k", { keepMs }, () => 1));
  await expect(inner).rejects.toMatchObject({ code: "self-deadlock" });
  expect(await settled(locks.once("k", { keepMs }, () => 1))).toEqual({ ran: true, value: 1 });
});

test.each([
  [{}, "Expected `keepMs` to be an integer"],
  [{ keepMs: 99 }, "Expected `keepMs` to be an integer"],
  [{ keepMs, ifCrashed: "wait" }, 'Expected `ifCrashed` to be "free" or "keep"'],
  [{ keepMs, attemptId: "a" }, "Expected no `attemptId`"],
  [{ keepMs, waitMs: 10 }, "waitMs"],
  [{ keepMS: 1_000, keepMs }, "keepMS"],
  [undefined, "Expected `options`"],
])("%o is refused", (options, message) => {
  expect(() => open().once("k", options as unknown as OnceOptions, () => 1)).toThrow(message);
});

test("a loss that only the engine knows rejects with the value of the work, although no notification arrived", async () => {
  const extend = engine.extend.bind(engine);
  const here = open({
    extend: (request) =>
      request.ttlMs > ttlMs ? Promise.resolve({ outcome: "lost", reason: "stolen" }) : extend(request),
  });
  const error = await here.once("k", { keepMs, ttlMs }, () => 7).catch((caught: unknown) => caught);
  expect(isLockError(error, "lease-lost") && [error.reason, error.result]).toEqual(["stolen", 7]);
});
