import assert from "node:assert/strict";

import type { LockEvent } from "../../state.ts";
import { later, type Scenes } from "./stage.ts";

export const views: Scenes = {
  "inspect tells who holds, why, for how long, and who waits in which order": async (stage) => {
    const { key } = stage;
    const labels = { order: "555" };
    const lease = await stage
      .open("here")
      .acquire(key, { owner: "first", reason: "charge", labels, ttlMs: 20_000 });
    void later(stage.open("there", { owner: "second" }).acquire(key, { owner: "second" }));
    await stage.queued(1);
    void later(stage.open("here", { owner: "third" }).acquire(key, { owner: "third" }));
    await stage.queued(2);
    const { kind, limit, waiters, waiterCount, nodes, ...state } = await stage.there.inspect(key);
    const inOrder = ["second", "third"].map((owner, position) => ({ owner, position }));
    assert.deepEqual(
      { kind, limit, waiters, waiterCount },
      { kind: "mutex", limit: 1, waiters: inOrder, waiterCount: 2 },
    );
    const { fencingToken } = lease;
    const { holders, remainingMs } = state;
    assert.equal(state.fencingToken, fencingToken);
    assert.deepEqual(holders, [{ owner: "first", reason: "charge", labels, fencingToken, remainingMs }]);
    assert.ok(remainingMs !== null && remainingMs > 1_000 && remainingMs <= 20_000);
    assert.ok(nodes.some(({ held }) => held));
  },

  "inspect tells of a lock that nobody holds": async ({ here, key }) => {
    const { holders, waiters, waiterCount, remainingMs, fencingToken } = await here.inspect(key);
    assert.deepEqual(
      { holders, waiters, waiterCount, remainingMs, fencingToken },
      { holders: [], waiters: [], waiterCount: 0, remainingMs: null, fencingToken: null },
    );
  },

  "what is logged of a lock has its numbers as text, and no secret": async ({ here, there, key }) => {
    const lease = await here.acquire(key);
    const text = JSON.stringify([await there.inspect(key), await there.list({ prefix: key }), lease]);
    const serialized = lease.transfer();
    await (await here.adopt(serialized)).release();
    assert.ok(text.includes(`"fencingToken":"${lease.fencingToken}"`));
    assert.ok(!text.includes(serialized.token));
  },

  "list pages through the held locks of a prefix": async ({ here, there, key }) => {
    const wanted = Array.from({ length: 7 }, (_, i) => `${key}:wanted:${i}`);
    for (const [i, held] of [...wanted, `${key}:other`].entries()) {
      await (i % 2 === 0 ? here : there).acquire(held, { reason: held });
    }
    const found = new Map<string, string | undefined>();
    let cursor: string | null | undefined;
    for (let page = 0; cursor !== null; page += 1) {
      assert.ok(page < 1_000, "the cursor never ends");
      const answer = await here.list({ prefix: `${key}:wanted:`, limit: 2, ...(cursor ? { cursor } : {}) });
      for (const lock of answer.locks) {
        found.set(lock.key, lock.holders[0]?.reason);
      }
      cursor = answer.cursor;
    }
    assert.deepEqual(
      [...found].sort(([one], [other]) => (one < other ? -1 : 1)),
      wanted.map((held) => [held, held]),
    );
  },

  "a watch of a key tells its state, then each change, until its signal aborts": async ({
    here,
    there,
    key,
  }) => {
    const abort = new AbortController();
    const events = here.watch(key, { signal: abort.signal })[Symbol.asyncIterator]();
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

  "a watch that waits ends with its signal": async ({ here, key }) => {
    const abort = new AbortController();
    const events = here.watch(key, { signal: abort.signal })[Symbol.asyncIterator]();
    await next(events);
    const end = events.next();
    abort.abort();
    assert.equal((await end).done, true);
  },

  "a watch of a prefix tells what is held, then what changes": async ({ here, there, key }) => {
    const prefix = `${key}:watched:`;
    const held = await there.acquire(`${prefix}a`);
    await there.acquire(`${key}:other`);
    const abort = new AbortController();
    const events = here.watch({ prefix }, { signal: abort.signal })[Symbol.asyncIterator]();
    const first = await next(events);
    assert.deepEqual([first.type, first.key, first.state.holders.length], ["snapshot", `${prefix}a`, 1]);
    await there.acquire(`${prefix}b`);
    await nextWhere(events, (event) => event.key === `${prefix}b` && event.state.holders.length === 1);
    await held.release();
    const gone = await nextWhere(events, (event) => event.key === `${prefix}a`);
    assert.deepEqual([gone.type, gone.state.holders], ["gone", []]);
    abort.abort();
    assert.equal((await events.next()).done, true);
  },

  "every node is named, and can be reached": async ({ here }) => {
    const nodes = await here.nodes();
    assert.ok(nodes.length > 0);
    for (const { node, reachable, latencyMs, error } of nodes) {
      assert.ok(node.length > 0);
      assert.deepEqual([reachable, error], [true, null]);
      assert.ok(latencyMs !== null && latencyMs >= 0);
    }
  },
};

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
