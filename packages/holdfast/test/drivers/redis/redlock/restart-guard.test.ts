import { manualClock, type ManualClock } from "holdfast/testing";
import { beforeEach, expect, test } from "vitest";

import type { ServerHealth } from "../../../../src/drivers/redis/server/health.ts";
import { RestartGuard } from "../../../../src/drivers/redis/redlock/restart-guard.ts";

const promisedMs = 10_600;
const memoryMs = promisedMs + 2_400;
const longUp = 1_000_000;

let clock: ManualClock;
let guard: RestartGuard;

beforeEach(() => {
  clock = manualClock();
  guard = new RestartGuard(clock, promisedMs, false);
});

function healthOf(runId: string, uptimeMs: number, more: Partial<ServerHealth> = {}): ServerHealth {
  return {
    runId,
    uptimeMs,
    role: "master",
    replicationId: "r",
    isDurable: false,
    evicts: false,
    flushes: 0,
    ...more,
  };
}

test("a node does not vote before its examination", () => {
  expect(guard.quarantine).toBeDefined();
  guard.observe("a", longUp);
  expect(guard.quarantine?.reason).toContain("not examined");
  guard.examine(healthOf("a", longUp));
  expect(guard.quarantine).toBeUndefined();
});

test("a node that started recently may have lost data, until its uptime exceeds the largest TTL", async () => {
  guard.examine(healthOf("a", 4_000));
  expect(guard.quarantine).toMatchObject({ remainingMs: memoryMs - 4_000 });
  await clock.advance(memoryMs - 4_001);
  expect(guard.quarantine).toBeDefined();
  await clock.advance(1);
  expect(guard.quarantine).toBeUndefined();
});

test("an observed restart is waited out by the client's own clock, whatever uptime the node reports", async () => {
  guard.examine(healthOf("a", longUp));
  expect(guard.observe("b", longUp)).toBe(true);
  guard.examine(healthOf("b", longUp));
  await clock.advance(memoryMs - 1);
  expect(guard.quarantine).toBeDefined();
  await clock.advance(1);
  expect(guard.quarantine).toBeUndefined();
});

test.each([
  ["negative, because its clock was set back after its start", -20_000],
  ["missing", Number.NaN],
])("an uptime that is %s shortens nothing, now or after a restart", async (_, uptimeMs) => {
  guard.examine(healthOf("a", uptimeMs));
  expect(guard.quarantine).toMatchObject({ remainingMs: memoryMs });
  await clock.advance(memoryMs);
  expect(guard.quarantine).toBeUndefined();
  guard.observe("b", 1_000);
  guard.examine(healthOf("b", 1_000));
  expect(guard.quarantine).toMatchObject({ remainingMs: memoryMs });
});

test("another reply of the same run changes nothing", () => {
  expect(guard.observe("a", 0)).toBe(true);
  expect(guard.observe("a", 0)).toBe(false);
});

test("a node that has every write on its disk votes at once", () => {
  guard.examine(healthOf("a", 0, { isDurable: true }));
  expect(guard.quarantine).toBeUndefined();
  guard.observe("b", 0);
  expect(guard.quarantine).toBeDefined(); // the run before may have had another configuration
  guard.examine(healthOf("b", 0, { isDurable: true }));
  expect(guard.quarantine).toBeUndefined();
});

test("durability now does not help if the run before was not durable", () => {
  guard.examine(healthOf("a", longUp));
  guard.observe("b", 0);
  guard.examine(healthOf("b", 0, { isDurable: true }));
  expect(guard.isDurable).toBe(false);
  expect(guard.quarantine).toBeDefined();
});

test("a late examination of the previous run changes nothing", () => {
  const durable = { isDurable: true };
  guard.examine(healthOf("a", longUp, durable));
  guard.observe("b", 0);
  expect(guard.examine(healthOf("a", longUp, { ...durable, flushes: 7 }))).toBeUndefined();
  expect(guard.runId).toBe("b");
  expect(guard.isExamined).toBe(false);
  expect(guard.observe("b", 0)).toBe(false);
  guard.examine(healthOf("b", 0, durable));
  expect(guard.isDurable).toBe(true);
  expect(guard.quarantine).toBeUndefined();
});

test("a replica does not vote, and not at once when it is promoted", async () => {
  guard.examine(healthOf("a", longUp, { role: "slave" }));
  expect(guard.quarantine).toMatchObject({ reason: "it is a slave, not a master", remainingMs: null });
  expect(guard.examine(healthOf("a", longUp, { replicationId: "promoted" }))).toContain("history");
  expect(guard.quarantine).toMatchObject({ remainingMs: memoryMs });
  await clock.advance(memoryMs);
  expect(guard.quarantine).toBeUndefined();
});

test("flushed keys are reported", () => {
  expect(guard.examine(healthOf("a", longUp))).toBeUndefined();
  expect(guard.examine(healthOf("a", longUp, { flushes: 1 }))).toContain("flushed");
});

test("with the guard off, a restarted node votes, but not a replica", () => {
  const off = new RestartGuard(clock, promisedMs, true);
  off.observe("a", 0);
  expect(off.quarantine).toBeUndefined();
  off.examine(healthOf("a", 0, { role: "slave" }));
  expect(off.quarantine).toBeDefined();
});
