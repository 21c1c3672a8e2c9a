import assert from "node:assert/strict";

import type { Holder } from "../../state.ts";
import { aborted, later, refused, type Scenes } from "./stage.ts";

export const election: Scenes = {
  "election: one leads, and at its resignation the next": async ({ here, there, key }) => {
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

  "election: a leader that is gone is followed when its term has expired": async (stage) => {
    const { here, there, key } = stage;
    const term = await here.election(key).campaign({ ttlMs: 500 });
    const next = later(there.election(key).campaign());
    await stage.queued(1);
    term.orphan();
    const isInTime = await Promise.race([next.then(() => true), stage.pause(1_500).then(() => false)]);
    assert.ok(isInTime, "not within TTL + 1 s");
    assert.equal(term.remainingMs(), 0);
  },

  "election: the loss of leadership is told": async ({ here, there, key }) => {
    const term = await here.election(key).campaign();
    const told = aborted(term.signal);
    await there.breakLock(key, { fencingToken: term.fencingToken, reason: "test" });
    await told;
    assert.equal(await here.election(key).leader(), null);
    assert.equal(await term.release(), false);
  },

  "election: who leads is refused a second term at the same time": async ({ here, key }) => {
    const candidate = here.election(key);
    const term = await candidate.campaign();
    await refused(candidate.campaign(), "self-deadlock");
    await term.release();
    await candidate.campaign();
  },

  "election: observers see every leader in turn": async ({ here, there, key }) => {
    const end = new AbortController();
    const seen: (Holder | null)[] = [];
    const waiting: { count: number; resolve: () => void }[] = [];
    const watching = (async () => {
      for await (const leader of there.election(key).observe({ signal: end.signal })) {
        seen.push(leader);
        for (const { count, resolve } of waiting) {
          if (seen.length >= count) {
            resolve();
          }
        }
      }
    })();
    const reach = (count: number): Promise<void> =>
      new Promise((resolve) => {
        waiting.push({ count, resolve });
        if (seen.length >= count) {
          resolve();
        }
      });
    await reach(1);
    const candidate = here.election(key, { owner: "first" });
    const term = await candidate.campaign();
    await reach(2);
    await candidate.resign();
    await reach(3);
    end.abort();
    await watching;
    assert.deepEqual(
      seen.map((leader) => leader?.fencingToken ?? null),
      [null, term.fencingToken, null],
    );
    assert.equal(seen[1]?.owner, "first");
  },
};
