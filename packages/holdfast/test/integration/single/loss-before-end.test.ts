import { setTimeout as sleep } from "node:timers/promises";

import type { Lease } from "holdfast";
import { expect, test } from "vitest";
import type { RedisServer } from "@holdfast/test-kit";

import { onCleanup, newKey, onSharedRedis, open, ownServer, warmUp } from "../../support/fault-fixture.ts";

const ttlsMs = [100, 300, 600];
const leasesOfRound = 60;
const leastJudged = 60;
/** For a busy machine: each round takes about 2 s. */
const mostMs = 120_000;
/** A timer of 1 ms that runs within 2 ms shows an event loop that is not blocked. */
const unblockedGapMs = 2;
/** How long before the end of a lease the event loop is measured. Signals abort later than that here. */
const beforeMs = 40;

/** How long the event loop took between two runs of a timer of 1 ms. */
class Heartbeat {
  readonly #beats: { readonly at: number; readonly gapMs: number }[] = [];
  #last = performance.now();

  constructor() {
    const timer = setInterval(() => {
      const at = performance.now();
      this.#beats.push({ at, gapMs: at - this.#last });
      this.#last = at;
    }, 1);
    onCleanup(() => {
      clearInterval(timer);
    });
  }

  /** The longest delay since `from`, including the time since the last run. */
  longestGapMs(from: number): number {
    const gaps = this.#beats.filter(({ at }) => at >= from).map(({ gapMs }) => gapMs);
    return Math.max(performance.now() - this.#last, ...gaps);
  }
}

interface Loss {
  /** From the abort of the signal to the end of the validity. */
  readonly earlyMs: number;
  readonly gapMs: number;
}

function lossOf(lease: Lease, heartbeat: Heartbeat): Promise<Loss> {
  return new Promise((resolve) => {
    lease.signal.addEventListener("abort", () => {
      const { validUntil } = lease;
      const earlyMs = validUntil - performance.now();
      resolve({ earlyMs, gapMs: heartbeat.longestGapMs(validUntil - beforeMs) });
    });
  });
}

/** Many leases with different ends, whose server freezes. */
async function lossesOfRound(server: RedisServer, heartbeat: Heartbeat): Promise<Loss[]> {
  const locks = open(server.client());
  await warmUp(locks);
  const leases: Lease[] = []; // a lease without a reference is not renewed
  const losses: Promise<Loss>[] = [];
  for (let index = 0; index < leasesOfRound; index += 1) {
    const ttlMs = ttlsMs[index % ttlsMs.length] as number;
    const lease = await locks.acquire(newKey(), { ttlMs });
    leases.push(lease);
    losses.push(lossOf(lease, heartbeat));
    await sleep(3);
  }
  server.freeze();
  const all = await Promise.all(losses);
  server.thaw();
  expect(leases.map((lease) => lease.remainingMs())).toEqual(leases.map(() => 0));
  return all;
}

onSharedRedis("a server that freezes", () => {
  test(
    "each signal aborts before the validity ends, if the event loop is not blocked",
    { timeout: mostMs },
    async () => {
      const server = await ownServer();
      onCleanup(() => {
        server.thaw();
      });
      const heartbeat = new Heartbeat();
      const judged: Loss[] = [];
      while (judged.length < leastJudged) {
        const losses = await lossesOfRound(server, heartbeat);
        judged.push(...losses.filter(({ gapMs }) => gapMs <= unblockedGapMs));
      }
      expect(judged.filter(({ earlyMs }) => earlyMs <= 0)).toEqual([]);
    },
  );
});
