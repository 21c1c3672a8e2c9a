import assert from "node:assert/strict";

import { LeaseLostError } from "../../errors.ts";
import { aborted, granted, later, refused, type Cases } from "./fixture.ts";

export const reentrant: Cases = {
  "reentrant: acquires nested in a withLock are counted, and the last release frees the lock": async (
    fixture,
  ) => {
    const { here, there, key } = fixture;
    const lock = here.reentrant(key);
    await lock.withLock(async (outer) => {
      const inner = await lock.acquire();
      assert.equal(inner.fencingToken, outer.fencingToken);
      await lock.withLock({ waitMs: 0 }, () => undefined);
      assert.equal(await inner.release(), true);
      assert.equal(await there.tryAcquire(key), null);
    });
    granted(await there.tryAcquire(key));
  },

  "reentrant: outside of a withLock every acquire is independent": async ({ here, key }) => {
    const lease = await here.reentrant(key).acquire();
    assert.equal(await here.reentrant(key).tryAcquire(), null);
    await refused(here.reentrant(key).acquire({ waitMs: 500 }), "wait-timeout");
    await lease.release();
  },

  "reentrant: acquires of one session nest, and another session waits": async ({ here, there, key }) => {
    const one = here.reentrant(key, { session: "one" });
    const [first, second] = await Promise.all([one.acquire(), one.acquire()]);
    assert.equal(first.fencingToken, second.fencingToken);
    assert.equal(await here.reentrant(key, { session: "two" }).tryAcquire(), null);
    assert.equal(await first.release(), true);
    assert.equal(await there.tryAcquire(key), null);
    assert.equal(await second.release(), true);
    granted(await there.tryAcquire(key));
  },

  "reentrant: branches of one withLock enter one after another, and none waits for its parent": async (
    fixture,
  ) => {
    const lock = fixture.here.reentrant(fixture.key);
    let inside = 0;
    const seen: number[] = [];
    await lock.withLock(() =>
      Promise.all(
        Array.from({ length: 5 }, (_, branch) =>
          lock.withLock(async () => {
            inside += 1;
            assert.equal(inside, 1);
            await lock.withLock(() => fixture.pause(2));
            seen.push(branch);
            inside -= 1;
          }),
        ),
      ),
    );
    assert.deepEqual(seen, [0, 1, 2, 3, 4]);
  },

  "reentrant: releases may come in any order, and an extra release changes nothing": async ({
    here,
    there,
    key,
  }) => {
    const lock = here.reentrant(key, { session: "s" });
    const outer = await lock.acquire();
    const inner = await lock.acquire();
    assert.equal(await outer.release(), true);
    assert.equal(await outer.release(), true);
    assert.equal(outer.remainingMs(), 0);
    assert.throws(() => outer.throwIfLost(), { code: "lease-lost" });
    inner.throwIfLost();
    assert.equal(await there.tryAcquire(key), null);
    assert.equal(await inner.release(), true);
    const next = granted(await there.tryAcquire(key));
    assert.equal(await inner.release(), true);
    assert.equal(await next.release(), true);
  },

  "reentrant: a loss ends every nested lease, and no caller enters after it": async ({
    here,
    there,
    key,
  }) => {
    const lock = here.reentrant(key);
    const working = lock.withLock(async (outer) => {
      const inner = await lock.acquire();
      const signalReason = Promise.all([aborted(outer.signal), aborted(inner.signal)]);
      await there.admin.breakLock(key, { fencingToken: outer.fencingToken, reason: "test" });
      for (const reason of await signalReason) {
        assert.ok(reason instanceof LeaseLostError && reason.reason === "broken");
      }
      await refused(lock.acquire(), "lease-lost");
      assert.equal(await inner.release(), false);
    });
    await refused(working, "lease-lost");
    granted(await here.tryAcquire(key));
  },

  "reentrant: a mutex inside its withLock, and another session, would wait for themselves": async (
    fixture,
  ) => {
    const { here, key } = fixture;
    await here.reentrant(key).withLock(async () => {
      await refused(here.acquire(key), "self-deadlock");
      await refused(here.reentrant(key).acquire({ session: "other" }), "self-deadlock");
    });
    await here.withLock(key, () => refused(here.reentrant(key).acquire(), "self-deadlock"));
  },

  "reentrant: a wait for a branch can be aborted, and times out": async ({ here, key }) => {
    const lock = here.reentrant(key);
    await lock.withLock(async () => {
      let end: () => void = () => undefined;
      const first = lock.withLock(() => new Promise<void>((resolve) => (end = resolve)));
      await refused(
        lock.withLock({ waitMs: 200 }, () => undefined),
        "wait-timeout",
      );
      const controller = new AbortController();
      const waiting = later(lock.withLock({ signal: controller.signal }, () => undefined));
      controller.abort(new Error("enough"));
      await assert.rejects(waiting, { message: "enough" });
      assert.equal((await lock.tryWithLock(() => undefined)).ran, false);
      end();
      await first;
      await lock.withLock(() => undefined);
    });
  },
};
