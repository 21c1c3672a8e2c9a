import assert from "node:assert/strict";

import type { WaitTimeoutError } from "../../errors.ts";
import type { Locks, LocksAdmin } from "../../locks.ts";
import type { LockEvent } from "../../lock-state.ts";
import { systemClock } from "../../runtime/clock.ts";
import { listed } from "./list.ts";
import { later, refused, type Cases, type Fixture } from "./fixture.ts";
import { assertGrantTimes, assertWaits } from "./times.ts";

export const inspect: Cases = {
  "inspect reports holder, reason, remaining time, and waiters in order": async (fixture) => {
    const { key } = fixture;
    const labels = { order: "555" };
    const startedAt = systemClock.now();
    const lease = await fixture
      .open("here")
      .acquire(key, { owner: "first", reason: "charge", labels, ttlMs: 20_000 });
    void later(fixture.open("there", { owner: "second" }).acquire(key, { owner: "second" }));
    await fixture.queued(1);
    void later(fixture.open("here", { owner: "third" }).acquire(key, { owner: "third" }));
    await fixture.queued(2);
    const whole = await fixture.there.inspect(key);
    const { kind, limit, waiters, waiterCount, nodes, ...state } = whole;
    const inOrder = ["second", "third"].map((owner, position) => ({ owner, position }));
    assert.deepEqual(
      { kind, limit, waiters: waiters.map(({ owner, position }) => ({ owner, position })), waiterCount },
      { kind: "mutex", limit: 1, waiters: inOrder, waiterCount: 2 },
    );
    assertWaits(fixture, whole, systemClock.now() - startedAt);
    const { fencingToken } = lease;
    const { holders, remainingMs } = state;
    assert.equal(state.fencingToken, fencingToken);
    const shown = holders.map(({ since: _since, heldMs: _heldMs, ...rest }) => rest);
    assert.deepEqual(shown, [{ owner: "first", reason: "charge", labels, fencingToken, remainingMs }]);
    assertGrantTimes(holders[0], systemClock.now() - startedAt);
    assert.ok(remainingMs !== null && remainingMs > 1_000 && remainingMs <= 20_000);
    assert.ok(nodes.some(({ held }) => held));
  },

  "callers waiting in the holder's process are counted, described and ordered there": async (fixture) => {
    const { key } = fixture;
    const here = fixture.open("here", { owner: "own" });
    const lease = await here.acquire(key);
    const waiting = Array.from({ length: 5 }, (_, i) => later(here.acquire(key, { owner: `caller ${i}` })));
    await waitFor(fixture, here, 5);
    const { waiters, waiterCount } = await here.inspect(key);
    const owners = ["caller 0", "caller 1", "caller 2", "caller 3", "caller 4"];
    assert.deepEqual(
      waiters.map(({ owner, position }) => ({ owner, position })),
      owners.map((owner, position) => ({ owner, position })),
    );
    assert.equal(waiterCount, 5);
    if (fixture.hasHandover) {
      assert.ok(waiters.every(({ since, waitedMs }) => since !== undefined && waitedMs !== undefined));
    }
    const listedState = await listed(here, key);
    assert.equal(listedState?.waiterCount, 5);
    assert.equal(listedState.oldestWaitMs === undefined, waiters[0]?.waitedMs === undefined);
    const abort = new AbortController();
    const events = here.admin.watch(key, { signal: abort.signal })[Symbol.asyncIterator]();
    assert.equal((await next(events)).state.waiterCount, 5);
    abort.abort();
    const error = await refused(here.acquire(key, { waitMs: 300 }), "wait-timeout");
    assert.equal((error as WaitTimeoutError).position, 5);
    await lease.release();
    for (const granted of waiting) {
      await (await granted).release();
    }
    assert.equal((await here.inspect(key)).waiterCount, 0);
  },

  "callers waiting for another process's lock are counted by their own process": async (fixture) => {
    const { there, key } = fixture;
    const here = fixture.open("here");
    const lease = await there.acquire(key);
    const waiting = Array.from({ length: 3 }, () => later(here.acquire(key)));
    await waitFor(fixture, here, 3);
    assert.deepEqual(
      (await here.inspect(key)).waiters.map(({ position }) => position),
      [0, 1, 2],
    );
    await lease.release();
    for (const granted of waiting) {
      await (await granted).release();
    }
  },

  "callers that wait in the holder's process are counted by other processes as the holder last reported them":
    async (fixture) => {
      const { key, there } = fixture;
      const here = fixture.open("here");
      const lease = await here.acquire(key, { reason: "first" });
      const leaving = new AbortController();
      const waiting = Array.from({ length: 3 }, () => later(here.acquire(key, { signal: leaving.signal })));
      await waitFor(fixture, here, 3);
      await lease.extend();
      await waitFor(fixture, there, 3);
      assert.equal((await listed(there, key))?.waiterCount, 3);
      for (const locks of [here, there]) {
        const { waiterCount, waiters, holders, oldestWaitMs } = await locks.inspect(key);
        assert.deepEqual([waiterCount, holders[0]?.reason], [3, "first"]);
        const isReported = fixture.hasHandover && locks === there;
        assert.equal(holders[0]?.localWaiters, isReported ? 3 : undefined);
        assert.equal(holders[0]?.localWaitMs === undefined, !isReported);
        assert.ok(!isReported || oldestWaitMs === holders[0]?.localWaitMs);
        assert.equal(waiters.length, isReported ? 0 : 3);
      }
      const abort = new AbortController();
      const events = there.admin.watch(key, { signal: abort.signal })[Symbol.asyncIterator]();
      assert.equal((await next(events)).state.waiterCount, 3);
      leaving.abort(new Error("changed my mind"));
      await Promise.allSettled(waiting);
      await waitFor(fixture, here, 0);
      await lease.extend();
      const { state } = await nextWhere(events, (event) => event.state.waiterCount === 0);
      assert.deepEqual([state.holders.length, state.holders[0]?.localWaiters], [1, undefined]);
      abort.abort();
      await lease.release();
    },

  "a report of callers that wait in memory is not counted beside them, also where its lease was orphaned":
    async (fixture) => {
      const { key } = fixture;
      const here = fixture.open("here");
      const lease = await here.acquire(key, { ttlMs: 3_000 });
      const waiting = Array.from({ length: 3 }, () => later(here.acquire(key)));
      await waitFor(fixture, here, 3);
      await lease.extend();
      lease.orphan();
      await waitFor(fixture, here, 3);
      for (const granted of waiting) {
        await (await granted).release();
      }
      await waitFor(fixture, here, 0);
    },

  "inspect reports a lock without a holder": async ({ here, key }) => {
    const state = await here.inspect(key);
    const { holders, waiters, waiterCount, remainingMs, fencingToken } = state;
    assert.deepEqual(
      { holders, waiters, waiterCount, remainingMs, fencingToken },
      { holders: [], waiters: [], waiterCount: 0, remainingMs: null, fencingToken: null },
    );
    assert.ok(!("oldestWaitMs" in state));
  },

  "the JSON of states and leases has fencing tokens as text, and no secret": async ({ here, there, key }) => {
    const lease = await here.acquire(key);
    const text = JSON.stringify([await there.inspect(key), await there.admin.list({ prefix: key }), lease]);
    const serialized = lease.transfer();
    await (await here.adopt(serialized)).release();
    assert.ok(text.includes(`"fencingToken":"${lease.fencingToken}"`));
    assert.ok(!text.includes(serialized.token));
  },

  "list pages through the held locks of a prefix": async ({ here, there, key }) => {
    const expectedKeys = Array.from({ length: 7 }, (_, i) => `${key}:wanted:${i}`);
    for (const [i, held] of [...expectedKeys, `${key}:other`].entries()) {
      await (i % 2 === 0 ? here : there).acquire(held, { reason: held });
    }
    const found = new Map<string, string | undefined>();
    let cursor: string | null | undefined;
    for (let page = 0; cursor !== null; page += 1) {
      assert.ok(page < 1_000, "the cursor never ends");
      const answer = await here.admin.list({
        prefix: `${key}:wanted:`,
        limit: 2,
        ...(cursor ? { cursor } : {}),
      });
      for (const lock of answer.locks) {
        found.set(lock.key, lock.holders[0]?.reason);
      }
      cursor = answer.cursor;
    }
    assert.deepEqual(
      [...found].sort(([one], [other]) => (one < other ? -1 : 1)),
      expectedKeys.map((held) => [held, held]),
    );
  },

  "list shows no key outside of its prefix, whatever the cursor is": async ({ here, key }) => {
    for (const held of ["a:1", "a:2", "b:1", "c:1"]) {
      await here.acquire(`${key}:${held}`);
    }
    const { cursor: ofOther } = await here.admin.list({ prefix: `${key}:a:`, limit: 1 });
    for (const given of [ofOther ?? ">", ">", `>${key}:a:1`, `>${key}:b:`, `>${key}:c:1`, "0", "1"]) {
      const found: string[] = [];
      try {
        let cursor: string | null = given;
        for (let page = 0; cursor !== null && page < 100; page += 1) {
          const answer: Awaited<ReturnType<LocksAdmin["list"]>> = await here.admin.list({
            prefix: `${key}:b:`,
            limit: 2,
            cursor,
          });
          found.push(...answer.locks.map((lock) => lock.key));
          cursor = answer.cursor;
        }
      } catch (error) {
        assert.ok(String(error).includes("Expected `cursor`"), `${given}: ${String(error)}`);
      }
      assert.ok(
        found.every((one) => one === `${key}:b:1`),
        `${given}: ${found.join()}`,
      );
    }
  },

  "a watch of a key reports its state, then each change, until its signal aborts": async ({
    here,
    there,
    key,
  }) => {
    const abort = new AbortController();
    const events = here.admin.watch(key, { signal: abort.signal })[Symbol.asyncIterator]();
    const first = await next(events);
    assert.deepEqual([first.type, first.key, first.state.holders], ["snapshot", key, []]);
    const lease = await there.acquire(key, { owner: "somebody" });
    await nextWhere(events, ({ state }) => state.holders[0]?.owner === "somebody");
    await lease.release();
    const last = await nextWhere(events, ({ state }) => state.holders.length === 0);
    assert.equal(last.key, key);
    abort.abort();
    assert.equal((await events.next()).done, true);
  },

  "an idle watch ends when its signal aborts": async ({ here, key }) => {
    const abort = new AbortController();
    const events = here.admin.watch(key, { signal: abort.signal })[Symbol.asyncIterator]();
    await next(events);
    const end = events.next();
    abort.abort();
    assert.equal((await end).done, true);
  },

  "a watch of a prefix reports the held locks, then each change": async ({ here, there, key, poll }) => {
    const prefix = `${key}:watched:`;
    const held = await there.acquire(`${prefix}a`);
    await there.acquire(`${key}:other`);
    // On a quorum the grant may be on its way to some nodes, so that too few replies show it.
    await poll(
      () => listed(here, `${prefix}a`),
      (state) => state !== undefined,
    );
    const abort = new AbortController();
    const events = here.admin.watch({ prefix }, { signal: abort.signal })[Symbol.asyncIterator]();
    const first = await next(events);
    assert.deepEqual([first.type, first.key, first.state.holders.length], ["snapshot", `${prefix}a`, 1]);
    await there.acquire(`${prefix}b`);
    await nextWhere(events, (event) => event.key === `${prefix}b` && event.state.holders.length === 1);
    await held.release();
    const released = await nextWhere(events, (event) => event.key === `${prefix}a`);
    assert.deepEqual([released.type, released.state.holders], ["gone", []]);
    abort.abort();
    assert.equal((await events.next()).done, true);
  },

  "every node has a name and is reachable": async ({ here }) => {
    const nodes = await here.admin.nodes();
    assert.ok(nodes.length > 0);
    for (const { node, reachable, latencyMs, error } of nodes) {
      assert.ok(node.length > 0);
      assert.deepEqual([reachable, error], [true, null]);
      assert.ok(latencyMs !== null && latencyMs >= 0);
    }
  },
};

async function waitFor(fixture: Fixture, locks: Locks, waiterCount: number): Promise<void> {
  while ((await locks.inspect(fixture.key)).waiterCount !== waiterCount) {
    await fixture.pause(5);
  }
}

async function next(events: AsyncIterator<LockEvent>): Promise<LockEvent> {
  const result = await events.next();
  assert.ok(result.done !== true, "the watch ended");
  return result.value;
}

async function nextWhere(
  events: AsyncIterator<LockEvent>,
  condition: (event: LockEvent) => boolean,
): Promise<LockEvent> {
  for (;;) {
    const event = await next(events);
    if (condition(event)) {
      return event;
    }
  }
}
