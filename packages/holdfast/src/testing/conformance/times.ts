import assert from "node:assert/strict";

import type { Holder, LockState } from "../../lock-state.ts";
import type { Fixture } from "./fixture.ts";

/** The error of an estimated engine clock, ms. */
const clockErrorMs = 1_000;
/** The engines whose queues have the times of their waiters. */
const withWaits: ReadonlySet<string> = new Set([
  "redis",
  "redlock",
  "memory",
  "postgres",
  "mysql",
  "zookeeper",
]);

/** An engine knows the time of a grant and its age, or neither. */
export function assertGrantTimes(holder: Holder | undefined, elapsedMs: number): void {
  const { since, heldMs } = holder ?? {};
  assert.equal(since === undefined, heldMs === undefined);
  if (since !== undefined && heldMs !== undefined) {
    assert.ok(heldMs >= 0 && heldMs <= elapsedMs + clockErrorMs, `${heldMs} ms in ${elapsedMs} ms`);
    assert.ok(Number.isSafeInteger(since) && since > 0);
  }
}

/** The waits are within the time of the test, and the first waiter has waited longest. Some engines do not know the waits. */
export function assertWaits(
  { engine }: Fixture,
  { waiters, oldestWaitMs }: LockState,
  elapsedMs: number,
): void {
  const waits = waiters.flatMap(({ waitedMs }) => waitedMs ?? []);
  assert.equal(waits.length, waits.length === 0 && !withWaits.has(engine) ? 0 : waiters.length);
  assert.deepEqual(
    waits,
    [...waits].sort((one, other) => other - one),
  );
  assert.equal(oldestWaitMs, waits[0]);
  for (const waitedMs of waits) {
    assert.ok(Number.isSafeInteger(waitedMs) && waitedMs >= 0 && waitedMs <= elapsedMs + clockErrorMs);
  }
}
