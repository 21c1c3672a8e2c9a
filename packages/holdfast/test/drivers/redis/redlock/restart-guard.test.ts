import { manualClock, type ManualClock } from "holdfast/testing";
import { beforeEach, describe, expect, test } from "vitest";

import type { ServerHealth } from "../../../../src/drivers/redis/server/handshake.ts";
import { RestartGuard } from "../../../../src/drivers/redis/redlock/restart-guard.ts";

const promisedMs = 10_600;
const memoryMs = promisedMs + 2_400;
const longUp = 1_000_000;

let clock: ManualClock;
let guard: RestartGuard;

beforeEach(() => {
  clock = manualClock();
  guard = new RestartGuard(clock, promisedMs, "wait");
});

const durable = { isDurable: true };

/** The guard of a client that trusts durable nodes, and has known the node's run "a" for long. */
function trusting(known: Partial<ServerHealth> = durable): RestartGuard {
  const trusts = new RestartGuard(clock, promisedMs, "trust-durable");
  trusts.examine(healthOf("a", longUp, known));
  return trusts;
}

/** The node was restarted, and the client saw it. */
function restart(of: RestartGuard, runId = "b", more: Partial<ServerHealth> = durable): void {
  of.observe(runId, 0);
  of.examine(healthOf(runId, 0, more));
}

function healthOf(runId: string, uptimeMs: number, more: Partial<ServerHealth> = {}): ServerHealth {
  return {
    runId,
    uptimeMs,
    role: "master",
    replicationId: "r",
    isDurable: false,
    hasRewritten: false,
    files: "",
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

test("a durable node waits after a restart", () => {
  guard.examine(healthOf("a", longUp, durable));
  restart(guard);
  expect(guard.quarantine).toMatchObject({ remainingMs: memoryMs });
  expect(guard.hasKept("a")).toBe(false);
});

describe("a trusted durable node", () => {
  test("waits at first contact, because its earlier run is unknown", () => {
    const trusts = new RestartGuard(clock, promisedMs, "trust-durable");
    trusts.examine(healthOf("a", 4_000, durable));
    expect(trusts.quarantine).toMatchObject({ remainingMs: memoryMs - 4_000 });
  });

  test("votes at once after restarts if the client saw each run", () => {
    const trusts = trusting();
    trusts.observe("b", 0);
    expect(trusts.quarantine).toBeDefined(); // this run may have other settings
    trusts.examine(healthOf("b", 0, durable));
    expect(trusts.quarantine).toBeUndefined();
    expect(trusts.hasKept("a")).toBe(true);
    restart(trusts, "c");
    expect(trusts.quarantine).toBeUndefined();
    expect(["a", "b", "another"].map((run) => trusts.hasKept(run))).toEqual([true, true, false]);
  });

  test("waits if the run before was not durable, and votes at once after the next restart", async () => {
    const trusts = trusting({});
    restart(trusts);
    expect(trusts.quarantine).toMatchObject({ remainingMs: memoryMs });
    expect(trusts.hasKept("a")).toBe(false);
    await clock.advance(memoryMs);
    restart(trusts, "c");
    expect(trusts.quarantine).toBeUndefined();
    expect(["a", "b"].map((run) => trusts.hasKept(run))).toEqual([false, true]);
  });

  test("waits if it is not durable any longer, and if the client never examined the run before", () => {
    const [without, missed] = [trusting(), trusting()];
    restart(without, "b", {});
    expect(without.quarantine).toMatchObject({ remainingMs: memoryMs });
    missed.observe("b", 0);
    restart(missed, "c");
    expect(missed.quarantine).toMatchObject({ remainingMs: memoryMs });
  });

  test("waits if it lost its durability in the run before, and not if it became durable in that run", () => {
    const [lost, gained] = [trusting(), trusting({})];
    lost.examine(healthOf("a", longUp));
    gained.examine(healthOf("a", longUp, durable));
    restart(lost);
    restart(gained);
    expect(lost.quarantine).toBeDefined();
    expect(gained.quarantine).toBeUndefined();
  });

  test("waits if it started with another append-only file", () => {
    const trusts = trusting({ ...durable, files: "/data" });
    restart(trusts, "b", { ...durable, files: "/other" });
    expect(trusts.quarantine).toBeDefined();
  });

  test("waits if it may have switched its append-only file on after its start", () => {
    const trusts = trusting({ ...durable, hasRewritten: true });
    restart(trusts);
    expect(trusts.quarantine).toBeUndefined();
    restart(trusts, "c", { ...durable, hasRewritten: true });
    expect(trusts.quarantine).toBeDefined();
  });

  test("continues a wait that a restart interrupts", async () => {
    const trusts = trusting({});
    restart(trusts);
    await clock.advance(1_000);
    restart(trusts, "c");
    expect(trusts.quarantine).toMatchObject({ remainingMs: memoryMs - 1_000 });
  });

  test("waits if it was a replica in the run before", () => {
    const trusts = trusting({ ...durable, role: "slave" });
    restart(trusts);
    expect(trusts.quarantine).toMatchObject({ remainingMs: memoryMs });
  });
});

test("a late examination of the previous run changes nothing", () => {
  const trusts = trusting();
  trusts.observe("b", 0);
  expect(trusts.examine(healthOf("a", longUp, { ...durable, flushes: 7 }))).toBeUndefined();
  expect(trusts.runId).toBe("b");
  expect(trusts.isExamined).toBe(false);
  expect(trusts.observe("b", 0)).toBe(false);
  trusts.examine(healthOf("b", 0, durable));
  expect(trusts.quarantine).toBeUndefined();
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
  const off = new RestartGuard(clock, promisedMs, "off");
  off.observe("a", 0);
  expect(off.quarantine).toBeUndefined();
  off.examine(healthOf("a", 0, { role: "slave" }));
  expect(off.quarantine).toBeDefined();
});
