import { limitMs } from "@holdfast/test-kit";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { setTimeout as pause } from "node:timers/promises";

import { afterEach, expect, test } from "vitest";

import type { Lease, Locks } from "holdfast";

import { connect, newKey, onSharedRedis, open, shared } from "../../support/fault-fixture.ts";

const leases = 12_000;
const leastTtlMs = 12_000;
/** A round of renewals fits into this many times the time of as many acquisitions and releases, beside the blocks. */
const roundFactor = 12;

onSharedRedis("many leases of one process", () => {
  const channel = "tracing:holdfast:renew:asyncEnd";
  const outcomes: string[] = [];
  const note = (trace: unknown): void => void outcomes.push((trace as { outcome: string }).outcome);

  afterEach(() => unsubscribe(channel, note));

  test(
    "none is lost, and each is renewed about once a round, when the event loop is blocked again and again",
    async () => {
      const locks = open(connect(shared.port));
      const pairsMs = await timeOfPairs(locks);
      const ttlMs = Math.max(leastTtlMs, Math.ceil(roundFactor * pairsMs));
      const freeMs = Math.max(100, pairsMs / 10);
      const held = await Promise.all(
        Array.from({ length: leases }, () => locks.acquire(newKey(), { ttlMs, waitMs: ttlMs })),
      );
      subscribe(channel, note);
      const end = performance.now() + ttlMs;
      while (performance.now() < end) {
        await pause(freeMs);
        block(600);
      }
      expect(held.filter(({ signal }) => signal.aborted)).toEqual([]);
      expect(new Set(outcomes)).toEqual(new Set(["extended"]));
      expect(outcomes.length).toBeLessThan(4 * leases);
      await releaseAll(held);
    },
    limitMs(300_000),
  );
});

/** How long this machine takes to acquire and release the leases, ms. */
async function timeOfPairs(locks: Locks): Promise<number> {
  const begun = performance.now();
  const acquired = await Promise.all(
    Array.from({ length: leases }, () => locks.acquire(newKey(), { ttlMs: 60_000, waitMs: 60_000 })),
  );
  await releaseAll(acquired);
  return performance.now() - begun;
}

/** Releases the leases in groups, each of which a busy machine releases within the time limit of a command. */
async function releaseAll(held: readonly Lease[]): Promise<void> {
  for (let from = 0; from < held.length; from += 1_000) {
    await Promise.all(held.slice(from, from + 1_000).map((lease) => lease.release()));
  }
}

function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    // blocks the event loop
  }
}
