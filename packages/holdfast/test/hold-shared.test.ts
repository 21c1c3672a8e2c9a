import { expect, test } from "vitest";

import { lost, onManualClock, open, settled, ttlMs } from "./support/hold-stage.ts";

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
