import assert from "node:assert/strict";

import { granted, type Cases } from "./fixture.ts";

export const exclusion: Cases = {
  "a try of another process does not get a held lock": async ({ here, there, key }) => {
    const lease = granted(await here.tryAcquire(key));
    assert.equal(await there.tryAcquire(key), null);
    await lease.release();
    granted(await there.tryAcquire(key));
    assert.equal(await here.tryAcquire(key), null);
  },

  "a try of the same process does not get a held lock": async ({ here, key }) => {
    const lease = granted(await here.tryAcquire(key));
    assert.equal(await here.tryAcquire(key), null);
    await lease.release();
    granted(await here.tryAcquire(key));
  },

  "locks of different keys do not exclude each other": async ({ here, there, key }) => {
    granted(await here.tryAcquire(`${key}:a`));
    granted(await here.tryAcquire(`${key}:b`));
    granted(await there.tryAcquire(`${key}:c`));
  },

  "exactly one of many concurrent tries is granted": async ({ here, there, key }) => {
    const tries = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? here : there).tryAcquire(key));
    const leases = (await Promise.all(tries)).filter((lease) => lease !== null);
    assert.equal(leases.length, 1);
  },

  "concurrent changes of one value lose no change": async ({ here, there, key, pause }) => {
    let value = 0;
    let inside = 0;
    async function change(caller: number): Promise<void> {
      for (let round = 0; round < 5; round += 1) {
        await (caller % 2 === 0 ? here : there).withLock(key, { waitMs: 30_000 }, async () => {
          inside += 1;
          assert.equal(inside, 1);
          const read = value;
          await pause(1);
          value = read + 1;
          inside -= 1;
        });
      }
    }
    await Promise.all(Array.from({ length: 8 }, (_, caller) => change(caller)));
    assert.equal(value, 40);
  },
};
