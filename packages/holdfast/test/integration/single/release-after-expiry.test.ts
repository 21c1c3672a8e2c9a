import { isLockError, LeaseLostError } from "holdfast";
import { expect, test } from "vitest";
import { rejection, timeFactor, waitUntil } from "@holdfast/test-kit";

import {
  onCleanup,
  connect,
  direct,
  newKey,
  onSharedRedis,
  open,
  shared,
  warmUp,
} from "../../support/fault-fixture.ts";

/** Far below any wait or TTL here. */
const soonMs = 1_000 * timeFactor;
const ttlMs = 60_000;

onSharedRedis("release after expiry", () => {
  test("release after expiry returns false at once, and leaves the lock to its present holder", async () => {
    const locks = open(connect(shared.port));
    await warmUp(locks);
    const key = newKey();
    const lease = await locks.acquire(key, { ttlMs: 100, renew: false });
    await waitUntil(async () => (await direct.exists(`lock:${key}`)) === 0, "the lease has expired");
    const other = await open(connect(shared.port)).acquire(key, { ttlMs });
    const begun = performance.now();
    expect(await lease.release()).toBe(false);
    expect(performance.now() - begun).toBeLessThan(soonMs);
    expect(await other.release()).toBe(true);
  });

  test("release after expiry in withLock rejects with the loss, and keeps the value of the work", async () => {
    const locks = open(connect(shared.port));
    const key = newKey();
    const { error, afterMs } = await rejection(
      locks.withLock(key, { ttlMs }, async () => {
        await steal(key);
        return "done";
      }),
    );
    expect(isLockError(error, "lease-lost")).toBe(true);
    expect((error as LeaseLostError).result).toBe("done");
    expect(afterMs).toBeLessThan(soonMs);
    expect(await direct.get(`lock:${key}`)).toBe("another's");
  });

  test("release after expiry in withLock does not replace the error of the work", async () => {
    const locks = open(connect(shared.port));
    const key = newKey();
    const own = new Error("the work's own");
    const { error, afterMs } = await rejection(
      locks.withLock(key, { ttlMs }, async () => {
        await steal(key);
        throw own;
      }),
    );
    expect(error).toBe(own);
    expect(afterMs).toBeLessThan(soonMs);
    expect(await direct.get(`lock:${key}`)).toBe("another's");
  });
});

/** As if the lease had expired during a pause, and another client had acquired the lock. */
async function steal(key: string): Promise<void> {
  await direct.set(`lock:${key}`, "another's");
  onCleanup(async () => {
    await direct.del(`lock:${key}`);
  });
}
