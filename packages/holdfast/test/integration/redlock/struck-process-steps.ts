import { setTimeout as pause } from "node:timers/promises";
import type { Lease, Locks } from "holdfast";
import { type Proxy, waitUntil } from "@holdfast/test-kit";

import { ExclusionChecker } from "../../support/exclusion-checker.ts";
import { distanceMs, holders, queued, type QuorumNode } from "../../support/quorum-servers.ts";
import { QuorumWorker } from "../../support/quorum-workers.ts";
import { grantCount, pauseAll } from "./proxied-clients.ts";

/** Far longer than the tests take, so that no test waits for an expiry. */
export const ttlMs = 60_000;
export const waitMs = 25_000;

/** TTLs and claims whose expiry the tests wait for. */
export const shortMs = 1_000;
export const claimMs = 600;

/** A process that is killed or frozen, and the clients that continue. */
export interface StruckProcess {
  readonly nodes: readonly QuorumNode[];
  readonly ways: readonly Proxy[];
  readonly worker: QuorumWorker;
  readonly other: Locks;
  readonly third: Locks;
  readonly key: string;
  readonly ledger: ExclusionChecker;
  /** Kills or freezes the process. */
  readonly strike: () => Promise<void>;
}

export interface Step {
  readonly step: string;
  /** Brings the process to this step and strikes it there. */
  readonly come: (process: StruckProcess) => Promise<Struck>;
}

export interface Struck {
  /** The acquire of a client that continues. */
  readonly waiting: Promise<Lease>;
  /** How long the grants of the struck process may block the others. */
  readonly blockedMs: number;
  /** The fencing token of the process's lease, if it had one. */
  readonly fencingToken?: bigint;
  /** The end of that lease's validity, on the scale of `sharedNow`. */
  readonly validUntil?: number;
  /** The result of the process when it continues. */
  readonly afterwards: "granted" | "lost" | "released";
}

export const steps: readonly Step[] = [
  {
    step: "requesting",
    come: async ({ nodes, ways: proxies, worker, other, key, strike }) => {
      pauseAll(proxies, "answers");
      worker.order("acquire", { key, options: { ttlMs: shortMs, waitMs } });
      await waitUntil(async () => (await grantCount(nodes, key)) === nodes.length, "all nodes have granted");
      await strike();
      const waiting = other.acquire(key, { ttlMs, waitMs });
      return { waiting, blockedMs: shortMs, afterwards: "granted" };
    },
  },
  {
    step: "split",
    come: async ({ nodes, ways: proxies, worker, other, key, strike }) => {
      pauseAll(proxies.slice(0, 2), "requests");
      worker.order("acquire", { key, options: { ttlMs: shortMs, waitMs } });
      await waitUntil(async () => (await grantCount(nodes.slice(2), key)) === 2, "the process has its half");
      await strike();
      const waiting = other.acquire(key, { ttlMs, waitMs });
      return { waiting, blockedMs: shortMs, afterwards: "granted" };
    },
  },
  {
    step: "waiting",
    come: async ({ nodes, worker, other, third, key, ledger, strike }) => {
      const lease = ledger.granted(await other.acquire(key, { ttlMs }));
      worker.order("acquire", { key, options: { ttlMs, waitMs } });
      await queued(nodes, key, 1);
      await strike();
      await pause(distanceMs);
      const waiting = third.acquire(key, { ttlMs, waitMs });
      await queued(nodes, key, 2);
      await ledger.release(lease);
      return { waiting, blockedMs: claimMs, afterwards: "granted" };
    },
  },
  {
    step: "claiming",
    come: async ({ nodes, ways: proxies, worker, other, third, key, ledger, strike }) => {
      const lease = ledger.granted(await other.acquire(key, { ttlMs }));
      const [before] = await holders(nodes, key);
      worker.order("acquire", { key, options: { ttlMs, waitMs } });
      await queued(nodes, key, 1);
      await pause(distanceMs);
      const waiting = third.acquire(key, { ttlMs, waitMs });
      await queued(nodes, key, 2);
      pauseAll(proxies, "requests");
      // The process may want to verify the notifications. Its requests are paused, so it cannot.
      const claim = Promise.race([worker.event("granted"), pause(1_000)]);
      await ledger.release(lease);
      await waitUntil(
        async () => !(await holders(nodes, key)).includes(before ?? null),
        "the lock is granted to the next waiter",
      );
      const claimed = await claim;
      await strike();
      if (!claimed) {
        return { waiting, blockedMs: claimMs, afterwards: "granted" };
      }
      const { validUntil } = claimed;
      const fencingToken = BigInt(claimed.fencingToken);
      return { waiting, blockedMs: claimMs, fencingToken, validUntil, afterwards: "lost" };
    },
  },
  {
    step: "elected",
    come: async ({ worker, other, key, strike }) => {
      const lease = await hold(worker, key);
      await strike();
      const waiting = other.acquire(key, { ttlMs, waitMs });
      return { waiting, blockedMs: shortMs, ...lease, afterwards: "lost" };
    },
  },
  {
    step: "releasing",
    come: async ({ nodes, ways: proxies, worker, other, key, strike }) => {
      const lease = await hold(worker, key);
      const waiting = other.acquire(key, { ttlMs, waitMs });
      const [before] = await holders(nodes, key);
      await queued(nodes, key, 1);
      pauseAll(proxies.slice(1), "requests");
      worker.order("release", { key });
      await waitUntil(
        async () => (await nodes[0]?.holder(key)) !== before,
        "one node has released the lease",
      );
      await strike();
      return { waiting, blockedMs: shortMs, ...lease, afterwards: "released" };
    },
  },
  {
    step: "handing over",
    come: async ({ nodes, ways: proxies, worker, other, key, strike }) => {
      const lease = await hold(worker, key);
      const waiting = other.acquire(key, { ttlMs, waitMs });
      const [before] = await holders(nodes, key);
      await queued(nodes, key, 1);
      await pause(distanceMs);
      worker.order("acquire", { key, options: { ttlMs: shortMs, waitMs } }); // after its own lease
      pauseAll(proxies.slice(1), "requests");
      worker.order("release", { key });
      await waitUntil(
        async () => (await nodes[0]?.holder(key)) !== before,
        "one node has granted the lock to the next waiter",
      );
      await strike();
      return { waiting, blockedMs: shortMs, ...lease, afterwards: "granted" };
    },
  },
];

/** The process acquires the lock on all nodes for a short TTL, without renewal. */
async function hold(
  worker: QuorumWorker,
  key: string,
): Promise<{ fencingToken: bigint; validUntil: number }> {
  const options = { ttlMs: shortMs, waitMs, renew: false };
  const { fencingToken, validUntil } = await worker.request("acquire", { key, options }, "granted");
  return { fencingToken: BigInt(fencingToken), validUntil };
}
