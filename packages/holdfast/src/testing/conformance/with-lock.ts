import assert from "node:assert/strict";

import { LeaseLostError } from "../../errors.ts";
import type { Lease } from "../../lease/lease.ts";
import type { Locks } from "../../locks.ts";
import { aborted, granted, refused, type Cases } from "./fixture.ts";

export const withLock: Cases = {
  "withLock returns the value of the callback, and releases": async ({ here, there, key }) => {
    const value = await here.withLock(key, async (lease) => {
      lease.throwIfLost();
      assert.equal(await there.tryAcquire(key), null);
      return "done";
    });
    assert.equal(value, "done");
    granted(await there.tryAcquire(key));
  },

  "withLock rejects with the error of the callback, and releases": async ({ here, there, key }) => {
    const failure = new Error("the work failed");
    const failing = here.withLock(key, () => Promise.reject(failure));
    await assert.rejects(failing, (error) => error === failure);
    granted(await there.tryAcquire(key));
  },

  "withLock rejects after a loss, with the value of the callback": async ({ here, there, key }) => {
    const running = here.withLock(key, async (lease) => {
      await breakHeldLock(lease, there);
      return "done";
    });
    const error = await refused(running, "lease-lost");
    assert.ok(error instanceof LeaseLostError);
    assert.deepEqual([error.reason, error.workEnded, error.result], ["broken", true, "done"]);
  },

  "withLock rejects after a loss, and says that a callback without a value ended": async ({
    here,
    there,
    key,
  }) => {
    const running = here.withLock(key, (lease) => breakHeldLock(lease, there));
    const error = await refused(running, "lease-lost");
    assert.ok(error instanceof LeaseLostError);
    assert.deepEqual([error.workEnded, error.result], [true, undefined]);
  },

  "the error of the callback takes precedence over a loss": async ({ here, there, key }) => {
    const failure = new Error("the work failed");
    const failing = here.withLock(key, async (lease) => {
      await breakHeldLock(lease, there);
      throw failure;
    });
    await assert.rejects(failing, (error) => error === failure);
  },

  "a callback that the signal aborts rejects with the loss": async ({ here, there, key }) => {
    const running = here.withLock(key, async (lease) => {
      await breakHeldLock(lease, there);
      throw new Error("The operation was aborted", { cause: lease.signal.reason });
    });
    const error = (await refused(running, "lease-lost")) as LeaseLostError;
    assert.deepEqual([error.reason, error.workEnded], ["broken", false]);
  },

  "with ifLost continue, only the lease's own methods report a loss": async ({ here, there, key }) => {
    const value = await here.withLock(
      key,
      { ifLost: "continue", ttlMs: 150, renew: false },
      async (lease) => {
        await (await there.acquire(key)).release();
        assert.throws(() => lease.throwIfLost(), { code: "lease-lost" });
        assert.equal(lease.signal.aborted, false);
        return "done";
      },
    );
    assert.equal(value, "done");
  },

  "tryWithLock runs the callback, or reports that the lock is held": async ({ here, there, key }) => {
    assert.deepEqual(await here.tryWithLock(key, () => 1), { ran: true, value: 1 });
    await there.acquire(key);
    const ran = await here.tryWithLock(key, () => assert.fail("the work ran without the lock"));
    assert.equal(ran.ran, false);
  },

  "a lock rejects inside its own withLock, and other locks do not": async ({ here, key }) => {
    await here.withLock(key, async () => {
      await refused(here.acquire(key), "self-deadlock");
      await refused(here.tryAcquire(key), "self-deadlock");
      await here.withLock(`${key}:inner`, () => refused(here.acquire(key), "self-deadlock"));
    });
  },
};

async function breakHeldLock({ key, fencingToken, signal }: Lease, operator: Locks): Promise<void> {
  const signalReason = aborted(signal);
  assert.equal(await operator.admin.breakLock(key, { fencingToken, reason: "test" }), true);
  await signalReason;
}
