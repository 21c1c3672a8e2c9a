import { expect, test } from "vitest";

import { clock, lost, onManualClock, open, settled, ttlMs } from "./support/hold-stage.ts";

onManualClock();

test("who has a lease on the same grant, by a repeat of the attempt, is told at once that it was released", async () => {
  const locks = open();
  const [first, second] = [
    await locks.acquire("k", { ttlMs, attemptId: "job 1" }),
    await locks.acquire("k", { ttlMs, attemptId: "job 1" }),
  ];
  const { signal } = second;
  expect(second.fencingToken).toBe(first.fencingToken);
  expect(await first.release()).toBe(true);
  expect(signal.reason).toEqual(lost("released"));
  expect(() => second.throwIfLost()).toThrow("lost");
  expect(await settled(second.release())).toBe(false);
});

test("the release of a lease that was lost takes nothing from who has another on the same grant", async () => {
  const [locks, there] = [open(), open()];
  const first = await locks.acquire("k", { ttlMs, attemptId: "job 1", renew: false });
  const [second, other] = [
    await locks.acquire("k", { ttlMs, attemptId: "job 1" }),
    await there.acquire("k", { ttlMs, attemptId: "job 1" }),
  ];
  await clock.advance(ttlMs + 100);
  expect([first.remainingMs(), await settled(first.release())]).toEqual([0, false]);
  expect(await settled(open().tryAcquire("k"))).toBeNull();
  second.throwIfLost();
  other.throwIfLost();
  expect(await settled(second.release())).toBe(true);
});
