import assert from "node:assert/strict";

import type { Locks } from "../../locks.ts";
import { contended, later, type Cases, type Fixture } from "./fixture.ts";

export const fairness: Cases = {
  "callers of one process get the lock in the order of their arrival": async ({ here, key }) => {
    const lease = await here.acquire(key);
    const served: number[] = [];
    const callers = Array.from({ length: 30 }, (_, caller) => here.withLock(key, () => served.push(caller)));
    await lease.release();
    await Promise.all(callers);
    assert.deepEqual(served, Array.from(callers.keys()));
  },

  "processes get the lock in the order of their arrival": async (fixture) => {
    const processes = Array.from({ length: 4 }, (_, i) => fixture.open(i % 2 === 0 ? "there" : "here"));
    assert.deepEqual(await grantOrder(fixture, processes), [0, 1, 2, 3]);
  },

  "without hand-over all callers get the lock in the order of their arrival": async (fixture) => {
    const here = fixture.open("here", { handover: false });
    const there = fixture.open("there", { handover: false });
    const callers = [here, there, there, here, there, here];
    assert.deepEqual(await grantOrder(fixture, callers), [0, 1, 2, 3, 4, 5]);
  },

  "a run of hand-overs ends, and other processes get their turn": async (fixture) => {
    const { there, key } = fixture;
    const here = fixture.open("here", { handover: { max: 2, maxMs: 60_000 } });
    const lease = await contended(here, key);
    const served: string[] = [];
    const other = there.withLock(key, () => served.push("there"));
    await fixture.queued(1);
    await fixture.pause(arrivalGapMs);
    const callers = Array.from({ length: 6 }, () => here.withLock(key, () => served.push("here")));
    await lease.release();
    await Promise.all([other, ...callers]);
    const queued = fixture.hasHandover ? ["here", "here", "there"] : ["there", "here", "here"];
    assert.deepEqual(served.slice(0, 3), queued);
    assert.equal(served.length, 7);
  },
};

/** The gap between arrivals. A shorter gap is not reliable, because processes know the engine's clock only approximately. */
const arrivalGapMs = 30;

/** Lets each caller wait before the next arrives, then grants all. @returns the order of the grants */
async function grantOrder(fixture: Fixture, callers: readonly Locks[]): Promise<number[]> {
  const { key } = fixture;
  const lease = await fixture.open("here", { handover: false }).acquire(key);
  const served: number[] = [];
  const waits: Promise<unknown>[] = [];
  for (const [caller, locks] of callers.entries()) {
    waits.push(later(locks.withLock(key, () => served.push(caller))));
    await fixture.queued(caller + 1);
    await fixture.pause(arrivalGapMs);
  }
  await lease.release();
  await Promise.all(waits);
  return served;
}
