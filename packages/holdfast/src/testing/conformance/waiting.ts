import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";

import type { AcquireTrace, Diagnostics } from "../../diagnostics.ts";
import { WaitTimeoutError } from "../../errors.ts";
import { granted, later, refused, type Cases, type Fixture } from "./fixture.ts";

export const waiting: Cases = {
  "a waiter gets the lock when it is released": async ({ here, there, key, queued }) => {
    const lease = await here.acquire(key);
    const waiter = later(there.acquire(key));
    await queued(1);
    assert.equal(await lease.release(), true);
    const next = await waiter;
    assert.equal(await here.tryAcquire(key), null);
    assert.equal(await next.release(), true);
  },

  "a wait that times out names the holder and leaves no residue": async (fixture) => {
    const { here, there, key } = fixture;
    const lease = await here.acquire(key, { owner: "the holder" });
    const error = await refused(there.acquire(key, { waitMs: 1_000 }), "wait-timeout");
    assert.ok(error instanceof WaitTimeoutError);
    assert.equal(error.holder?.owner, "the holder");
    assert.equal(error.key, key);
    await lease.release();
    await expectNoWaiters(fixture);
  },

  "a wait within the process of the holder times out in the same way": async (fixture) => {
    const { here, key } = fixture;
    const lease = await here.acquire(key, { owner: "the holder" });
    const error = await refused(here.acquire(key, { waitMs: 1_000 }), "wait-timeout");
    assert.ok(error instanceof WaitTimeoutError);
    assert.equal(error.holder?.owner, "the holder");
    await lease.release();
    await expectNoWaiters(fixture);
  },

  "waitMs 0 tries once": async ({ here, there, key }) => {
    const lease = await here.acquire(key, { waitMs: 0 });
    await refused(there.acquire(key, { waitMs: 0 }), "wait-timeout");
    await lease.release();
    assert.equal(await (await there.acquire(key, { waitMs: 0 })).release(), true);
  },

  "an aborted wait rejects with the signal's reason and leaves no residue": async (fixture) => {
    const { here, there, key } = fixture;
    const lease = await here.acquire(key);
    const abort = new AbortController();
    const reason = new Error("no longer needed");
    const waiter = later(there.acquire(key, { signal: abort.signal }));
    await fixture.queued(1);
    abort.abort(reason);
    await assert.rejects(waiter, (error) => error === reason);
    await fixture.queued(0);
    await lease.release();
    await expectNoWaiters(fixture);
  },

  "a wait is published, with its place, its grant and its end": async (fixture) => {
    const { here, there, key } = fixture;
    const channels = ["holdfast:queued", "holdfast:granted", "tracing:holdfast:acquire:asyncEnd"];
    const seen = await published({ instance: there.instance, key }, channels, async (messages) => {
      const lease = await here.acquire(key);
      const waiter = later(there.acquire(key, { ttlMs: 20_000 }));
      await fixture.queued(1);
      while (messages.length === 0) {
        await here.inspect(key); // the reply to the waiter is under way
      }
      await lease.release();
      await (await waiter).release();
    });
    const ended = seen.pop() as AcquireTrace;
    const [queued, granted, ...more] = seen as [Diagnostics["queued"], Diagnostics["granted"]];
    const { call, engine, queuedMs = 0 } = ended;
    assert.deepEqual(more, []);
    assert.deepEqual(
      [queued.call, granted.call, queued.engine, granted.engine],
      [call, call, engine, engine],
    );
    assert.deepEqual([queued.where, granted.where, granted.via], ["engine", "engine", ended.via]);
    assert.deepEqual(
      [ended.outcome, ended.kind, ended.mode, ended.ttlMs],
      ["granted", "mutex", "exclusive", 20_000],
    );
    assert.equal(ended.fencingToken, granted.fencingToken);
    assert.deepEqual([granted.queuedMs, queuedMs > 0], [queuedMs, true]);
  },

  "an already aborted signal rejects without a request": async (fixture) => {
    const { here, key } = fixture;
    const reason = new Error("too late");
    const signal = AbortSignal.abort(reason);
    await assert.rejects(here.acquire(key, { signal }), (error) => error === reason);
    await assert.rejects(here.tryAcquire(key, { signal }), (error) => error === reason);
    await expectNoWaiters(fixture);
  },

  "an abort after the grant changes nothing": async ({ here, there, key }) => {
    const abort = new AbortController();
    const lease = await here.acquire(key, { signal: abort.signal });
    abort.abort();
    lease.throwIfLost();
    assert.equal(await there.tryAcquire(key), null);
    assert.equal(await lease.release(), true);
  },

  "an aborted waiter does not block later waiters": async ({ here, there, key, open, queued }) => {
    const lease = await open("here").acquire(key);
    const abort = new AbortController();
    const first = later(there.acquire(key, { signal: abort.signal }));
    await queued(1);
    const second = later(here.acquire(key));
    await queued(2);
    abort.abort();
    await assert.rejects(first);
    await lease.release();
    assert.equal(await (await second).release(), true);
  },
};

/** Runs `work`, and returns the messages of one `Locks` about one key on some channels. */
async function published(
  { instance, key }: { readonly instance: number; readonly key: string },
  channels: readonly string[],
  work: (messages: readonly unknown[]) => Promise<void>,
): Promise<unknown[]> {
  const messages: unknown[] = [];
  const listen = (message: unknown): void => {
    const named = message as { instance: number; key: string };
    if (named.instance === instance && named.key === key) {
      messages.push(message);
    }
  };
  channels.forEach((channel) => subscribe(channel, listen));
  try {
    await work(messages);
  } finally {
    channels.forEach((channel) => unsubscribe(channel, listen));
  }
  return messages;
}

/** Asserts that the key has neither holder nor waiter, and that a try acquires it. */
async function expectNoWaiters({ here, there, key }: Fixture): Promise<void> {
  const { holders, waiterCount } = await here.inspect(key);
  assert.deepEqual({ holders, waiterCount }, { holders: [], waiterCount: 0 });
  granted(await there.tryAcquire(key));
}
