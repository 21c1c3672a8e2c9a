import assert from "node:assert/strict";

import { granted, type Scenes } from "./stage.ts";

export const fencing: Scenes = {
  "fencing tokens rise from release to grant": async ({ here, there, key }) => {
    const tokens: bigint[] = [];
    for (let round = 0; round < 10; round += 1) {
      const lease = granted(await (round % 3 === 0 ? here : there).tryAcquire(key));
      tokens.push(lease.fencingToken);
      await lease.release();
    }
    assertRising(tokens);
  },

  "fencing tokens rise over an expiry": async ({ here, there, key }) => {
    const first = await here.acquire(key, { ttlMs: 150, renew: false });
    const second = await there.acquire(key);
    assertRising([first.fencingToken, second.fencingToken]);
  },

  "fencing tokens rise over a break": async ({ here, there, key }) => {
    const { fencingToken } = await here.acquire(key);
    await there.breakLock(key, { fencingToken, reason: "test" });
    const second = await there.acquire(key);
    assertRising([fencingToken, second.fencingToken]);
  },

  "fencing tokens rise through hand-overs within a process, and between processes": async (stage) => {
    const { key } = stage;
    const processes = [
      stage.open("here", { handover: { max: 3 } }),
      stage.open("there", { handover: { max: 3 } }),
    ];
    const tokens: bigint[] = [];
    const callers = Array.from({ length: 40 }, (_, i) =>
      (processes[i % 2] ?? stage.here).withLock(key, { waitMs: 30_000 }, ({ fencingToken }) =>
        tokens.push(fencingToken),
      ),
    );
    await Promise.all(callers);
    assert.equal(tokens.length, 40);
    assertRising(tokens);
  },

  "the newest fencing token is current, also after its release, and an older one is stale": async (stage) => {
    const { here, there, key } = stage;
    const first = await here.acquire(key);
    assert.equal(await there.checkFence(key, first.fencingToken), "current");
    await first.release();
    assert.equal(await there.checkFence(key, first.fencingToken), "current");
    const second = await there.acquire(key);
    assert.equal(await here.checkFence(key, first.fencingToken), "stale");
    assert.equal(await here.checkFence(key, second.fencingToken), "current");
  },

  "a fencing token that was never granted is unknown": async ({ here, key }) => {
    assert.equal(await here.checkFence(key, 1n), "unknown");
    const { fencingToken } = await here.acquire(key);
    assert.equal(await here.checkFence(key, fencingToken + 1_000_000n), "unknown");
  },
};

function assertRising(tokens: readonly bigint[]): void {
  for (const [i, token] of tokens.entries()) {
    const before = tokens[i - 1] ?? 0n;
    assert.ok(token > before, `${token} was granted after ${before}`);
  }
}
