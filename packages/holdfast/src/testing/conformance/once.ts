import assert from "node:assert/strict";

import { granted, type Cases } from "./fixture.ts";

/** A timer may be early by this time. */
const timerMs = 2;
/** An engine may round a TTL up to its unit and to its minimum, which are whole seconds on etcd. */
const roundingMs = 1_600;

export const once: Cases = {
  "once runs work once in a period, and keeps the key after the work": async ({ here, there, key, now }) => {
    const keepMs = 1_000;
    const startedAt = now();
    assert.deepEqual(await here.once(key, { keepMs }, () => 1), { ran: true, value: 1 });
    const second = await there.once(key, { keepMs }, () => 2);
    // A busy machine may be later than the period.
    assert.ok(!second.ran || now() - startedAt >= keepMs - timerMs);
    const next = granted(await there.acquire(key));
    assert.ok(now() - startedAt >= keepMs - timerMs);
    assert.equal(await next.release(), true);
  },

  "once frees the key of work that throws": async ({ here, there, key }) => {
    const failing = here.once(key, { keepMs: 30_000 }, () => Promise.reject(new Error("the work failed")));
    await assert.rejects(failing, { message: "the work failed" });
    assert.deepEqual(await there.once(key, { keepMs: 1_000 }, () => 2), { ran: true, value: 2 });
  },

  "once with ifCrashed keep ends with keepMs, also after renewals": async ({
    here,
    there,
    key,
    now,
    poll,
  }) => {
    const [keepMs, ttlMs] = [4_000, 500];
    const work = async (): Promise<void> => {
      const startedAt = now();
      const held = async () => {
        const elapsedMs = now() - startedAt;
        const { holders } = await there.inspect(key);
        return { elapsedMs, remainingMs: holders[0]?.remainingMs ?? 0 };
      };
      // After a crash the key is held for the time that remains at any moment.
      const { elapsedMs, remainingMs } = await poll(held, (seen) => seen.elapsedMs > keepMs - 250);
      const mostMs = Math.max(ttlMs, keepMs - elapsedMs) + roundingMs;
      assert.ok(remainingMs <= mostMs, `${remainingMs} ms remain after ${elapsedMs} ms`);
    };
    // On a busy machine a lease with a short TTL may be lost.
    const options = { keepMs, ttlMs, ifCrashed: "keep", ifLost: "continue" } as const;
    assert.equal((await here.once(key, options, work)).ran, true);
  },
};
