import { inspect } from "node:util";

import { EngineError, isLockError, LeaseLostError, LockError, WaitTimeoutError } from "holdfast";
import { expect, test, vi } from "vitest";

import { closedError } from "../src/errors.ts";

const holder = { owner: "worker@host:1", fencingToken: 17n, remainingMs: 1_200 };

test("the error of a timed-out wait has the holder, the position in the queue, and is retryable", () => {
  const error = new WaitTimeoutError("order:1", 250, holder, 3);
  expect(error).toMatchObject({ name: "WaitTimeoutError", code: "wait-timeout", key: "order:1" });
  expect(error).toMatchObject({ retryable: true, holder, position: 3 });
  expect(error.message).toBe('The lock "order:1" is still held by worker@host:1 after 250 ms');
});

test("the error of a lost lease has the reason and the time, and is not retryable", () => {
  const cause = new Error("network");
  const error = new LeaseLostError("order:1", "engine-unreachable", 5_000, { cause, result: "done" });
  expect(error).toMatchObject({ name: "LeaseLostError", code: "lease-lost", reason: "engine-unreachable" });
  expect(error).toMatchObject({ lostAt: 5_000, result: "done", workEnded: true, cause, retryable: false });
  expect(new LeaseLostError("order:1", "expired", 0, { cause })).toMatchObject({ workEnded: false });
});

test("the error of an engine has the possible residue and the retry delay", () => {
  const error = new EngineError("Redis: LOADING", { outcome: "none", retryable: true, retryAfterMs: 300 });
  expect(error).toMatchObject({ name: "EngineError", code: "engine-unavailable", outcome: "none" });
  expect(error).toMatchObject({ retryable: true, retryAfterMs: 300, key: undefined });
});

test("every error is an Error and a LockError, with a stack", () => {
  for (const error of [
    new WaitTimeoutError("k", 0),
    new LeaseLostError("k", "expired", 0),
    new EngineError("down", { outcome: "unknown", retryable: true }),
    closedError("k"),
  ]) {
    expect(error).toBeInstanceOf(LockError);
    expect(error).toBeInstanceOf(Error);
    expect(error.stack).toContain("errors.test.ts");
  }
});

test("errors go through JSON with fencing tokens as text", () => {
  expect(JSON.parse(JSON.stringify(new WaitTimeoutError("k", 5, holder, 0)))).toEqual({
    name: "WaitTimeoutError",
    code: "wait-timeout",
    message: 'The lock "k" is still held by worker@host:1 after 5 ms',
    key: "k",
    retryable: true,
    holder: { owner: "worker@host:1", fencingToken: "17", remainingMs: 1_200 },
    position: 0,
  });
  expect(new LeaseLostError("k", "stolen", 7, { result: 1n }).toJSON()).toMatchObject({
    code: "lease-lost",
    reason: "stolen",
    lostAt: 7,
    workEnded: true,
  });
  expect(() => JSON.stringify(new LeaseLostError("k", "stolen", 7, { result: 1n }))).not.toThrow();
  expect(new EngineError("m", { outcome: "unknown", retryable: true, retryAfterMs: 9 }).toJSON()).toEqual({
    name: "EngineError",
    code: "engine-unavailable",
    message: "m",
    key: undefined,
    retryable: true,
    outcome: "unknown",
    retryAfterMs: 9,
  });
});

test("isLockError recognises Holdfast's errors, and compares the code", () => {
  const error = closedError();
  expect([isLockError(error), isLockError(error, "closed"), isLockError(error, "lease-lost")]).toEqual([
    true,
    true,
    false,
  ]);
  for (const other of [new Error("closed"), { code: "closed" }, null, undefined, "closed", () => error]) {
    expect(isLockError(other)).toBe(false);
  }
});

test("errors are recognised across copies of the package", async () => {
  vi.resetModules();
  const copy = await import("../src/errors.ts");
  expect(copy.LockError).not.toBe(LockError);
  const theirs = new copy.LeaseLostError("k", "broken", 1);
  expect(theirs).not.toBeInstanceOf(LockError);
  expect(isLockError(theirs, "lease-lost")).toBe(true);
  expect(copy.isLockError(new WaitTimeoutError("k", 1), "wait-timeout")).toBe(true);
});

test("the mark of an error is not shown in logs", () => {
  expect(inspect(closedError("k"))).not.toContain("holdfast.");
});
