import assert from "node:assert/strict";

import type { Locks } from "../../locks.ts";
import { contended, later, type Scenes, type Stage } from "./fixture.ts";

export const order: Scenes = {
  "callers of one process are served in the order of their arrival": async ({ here, key }) => {
    const lease = await here.acquire(key);
    const served: number[] = [];
    const callers = Array.from({ length: 30 }, (_, caller) => here.withLock(key, () => served.push(caller)));
    await lease.release();
    await Promise.all(callers);
    assert.deepEqual(served, Array.from(callers.keys()));
  },

  "processes are served in the order of their arrival": async (stage) => {
    const processes = Array.from({ length: 4 }, (_, i) => stage.open(i % 2 === 0 ? "there" : "here"));
    assert.deepEqual(await servedOneByOne(stage, processes), [0, 1, 2, 3]);
  },

  "without hand-over everybody is served strictly in the order of arrival": async (stage) => {
    const here = stage.open("here", { handover: false });
    const there = stage.open("there", { handover: false });
    const callers = [here, there, there, here, there, here];
    assert.deepEqual(await servedOneByOne(stage, callers), [0, 1, 2, 3, 4, 5]);
  },

  "a run of hand-overs ends, and other processes get their turn": async (stage) => {
    const { there, key } = stage;
    const here = stage.open("here", { handover: { max: 2, maxMs: 60_000 } });
    const lease = await contended(here, key);
    const served: string[] = [];
    const other = there.withLock(key, () => served.push("there"));
    await stage.queued(1);
    await stage.pause(arrivalGapMs);
    const callers = Array.from({ length: 6 }, () => here.withLock(key, () => served.push("here")));
    await lease.release();
    await Promise.all([other, ...callers]);
    const inTurn = stage.handsOver ? ["here", "here", "there"] : ["there", "here", "here"];
    assert.deepEqual(served.slice(0, 3), inTurn);
    assert.equal(served.length, 7);
  },
};

/** Processes know the order of their arrival as well as they know the engine's clock: not to the millisecond. */
const arrivalGapMs = 30;

/** Each waits before the next arrives; then all are served. @returns in which order */
async function servedOneByOne(stage: Stage, callers: readonly Locks[]): Promise<number[]> {
  const { key } = stage;
  const lease = await stage.open("here", { handover: false }).acquire(key);
  const served: number[] = [];
  const waits: Promise<unknown>[] = [];
  for (const [caller, locks] of callers.entries()) {
    waits.push(later(locks.withLock(key, () => served.push(caller))));
    await stage.queued(caller + 1);
    await stage.pause(arrivalGapMs);
  }
  await lease.release();
  await Promise.all(waits);
  return served;
}
