import { EngineError, isLockError, LockError } from "holdfast";
import { describe, expect, test } from "vitest";

import {
  engineError,
  isTransient,
  outcomeOf,
  serverRefusal,
  timeoutError,
} from "../../../../src/drivers/redis/server/errors.ts";

const passing = [
  "READONLY You can't write against a read only replica.",
  "LOADING Redis is loading the dataset in memory",
  "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
  "CLUSTERDOWN The cluster is down",
  "NOREPLICAS Not enough good replicas to write.",
  "OOM command not allowed when used memory > 'maxmemory'.",
  "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
  "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
  "connect ECONNREFUSED 127.0.0.1:6379",
  "Connection is closed.",
];
const lasting = [
  "NOAUTH Authentication required.",
  "NOPERM this user has no permissions to run the 'evalsha' command",
  "WRONGPASS invalid username-password pair or user is disabled.",
  "DENIED Redis is running in protected mode",
  "ERR unknown command 'EVALSHA'",
  "ERR invalid password",
  "ERR The user executing the script can't run this command or subcommand script",
  "ERR ACL failure in script: User app has no permissions to run the 'zadd' command", // since Redis 7.2
];

describe("a failure of the server or the connection", () => {
  test.each(passing)("is temporary: %s", (message) => {
    const cause = new Error(message);
    const error = engineError(cause, "k", "unknown");
    expect(error).toBeInstanceOf(EngineError);
    expect(error).toMatchObject({
      code: "engine-unavailable",
      key: "k",
      outcome: "unknown",
      retryable: true,
    });
    expect(error.cause).toBe(cause);
    expect(error.message).toContain(message);
    expect([isTransient(cause), isTransient(error)]).toEqual([true, true]);
  });

  test.each(lasting)("is lasting: %s", (message) => {
    const error = engineError(new Error(message), "k", "none");
    expect(error).toMatchObject({ code: "engine-unavailable", outcome: "none", retryable: false });
    expect([isTransient(new Error(message)), isTransient(error)]).toEqual([false, false]);
  });

  test.each(lasting)("inside a script is lasting as well: %s", (message) => {
    expect(isTransient(serverRefusal(message))).toBe(false);
  });
});

test.each([
  "READONLY You can't write against a read only replica.",
  "@user_script: 16: -READONLY You can't write against a read only replica.", // the form of Redis 6.2
])("that the server itself reported has had no effect: %s", (message) => {
  expect(outcomeOf(new Error(message))).toBe("none");
  expect(outcomeOf(new Error(`Connection lost after ${message}`))).toBe("unknown");
});

test("a key of another type is another kind of lock, and no reason for a retry", () => {
  const error = engineError(
    serverRefusal("WRONGTYPE Operation against a key holding the wrong kind of value"),
    "order:1",
    "none",
  );
  expect(error).toMatchObject({ code: "kind-mismatch", key: "order:1", retryable: false });
  expect(error.message).toContain('"order:1"');
});

test("an error that is a LockError already stays unchanged", () => {
  const full = new LockError("full", { code: "too-many-waiters", retryable: true });
  const closed = new LockError("closed", { code: "closed" });
  expect(engineError(full, "k", "unknown")).toBe(full);
  expect([isTransient(full), isTransient(closed)]).toEqual([true, false]);
});

test("a thrown value that is no Error is reported with its own text", () => {
  expect(engineError("gone", undefined, "unknown").message).toContain("gone");
  expect(isTransient("NOAUTH no Error")).toBe(false);
});

test("a missing reply leaves the outcome unknown, and is retryable", () => {
  const error = timeoutError(500);
  expect(isLockError(error, "engine-unavailable")).toBe(true);
  expect(error).toMatchObject({ outcome: "unknown", retryable: true });
  expect(error.message).toContain("500 ms");
});
