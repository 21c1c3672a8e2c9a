import assert from "node:assert/strict";

import type { Holder } from "../../lock-state.ts";
import { aborted, later, refused, type Cases } from "./fixture.ts";

export const election: Cases = {
  "election: one candidate leads, and the next follows its resignation": async ({ here, there, key }) => {
    const [one, other] = [here.election(key), there.election(key)];
    assert.equal(await one.leader(), null);
    assert.equal(await one.resign(), false);
    const term = await one.campaign();
    assert.equal((await other.leader())?.fencingToken, term.fencingToken);
    await refused(other.campaign({ waitMs: 500 }), "wait-timeout");
    const next = later(other.campaign());
    assert.equal(await one.resign(), true);
    assert.ok((await next).fencingToken > term.fencingToken);
    assert.equal((await one.leader())?.fencingToken, (await next).fencingToken);
  },

  "election: a leader that stops renewing is followed when its term expires": async (fixture) => {
    const { here, there, key } = fixture;
    const term = await here.election(key).campaign({ ttlMs: 500 });
    const next = later(there.election(key).campaign());
    await fixture.queued(1);
    term.orphan();
    const limitMs = Math.max(500, term.remainingMs()) + 1_000; // an engine may grant a longer TTL
    const isInTime = await Promise.race([next.then(() => true), fixture.pause(limitMs).then(() => false)]);
    assert.ok(isInTime, "not within TTL + 1 s");
    assert.equal(term.remainingMs(), 0);
  },

  "election: the loss of leadership aborts the term's signal": async ({ here, there, key }) => {
    const term = await here.election(key).campaign();
    const signalReason = aborted(term.signal);
    await there.admin.breakLock(key, { fencingToken: term.fencingToken, reason: "test" });
    await signalReason;
    assert.equal(await here.election(key).leader(), null);
    assert.equal(await term.release(), false);
  },

  "election: a leader cannot campaign for a second term": async ({ here, key }) => {
    const candidate = here.election(key);
    const term = await candidate.campaign();
    await refused(candidate.campaign(), "self-deadlock");
    await term.release();
    await candidate.campaign();
  },

  "election: observers see every leader in turn": async ({ here, there, key }) => {
    const end = new AbortController();
    const leaders = there.election(key).observe({ signal: end.signal })[Symbol.asyncIterator]();
    assert.equal((await leaders.next()).value, null);
    const candidate = here.election(key, { owner: "first" });
    const term = await candidate.campaign();
    const { owner, fencingToken } = (await leaders.next()).value as Holder;
    assert.deepEqual([owner, fencingToken], ["first", term.fencingToken]);
    await candidate.resign();
    assert.equal((await leaders.next()).value, null);
    end.abort();
    assert.equal((await leaders.next()).done, true);
  },
};
