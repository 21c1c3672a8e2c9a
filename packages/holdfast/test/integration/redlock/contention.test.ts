import type { Lease } from "holdfast";
import type { RedlockOptions } from "holdfast/redis";
import { expect, test } from "vitest";
import { type Proxy, waitUntil } from "@holdfast/test-kit";

import { ExclusionChecker } from "../../support/exclusion-checker.ts";
import {
  holders,
  newKey,
  onQuorum,
  open,
  startNodes,
  startProxies,
  warmUp,
  type QuorumNode,
} from "../../support/quorum-servers.ts";
import { QuorumWorker, sharedNow } from "../../support/quorum-workers.ts";
import { Recording } from "../../support/workers.ts";

const ttlMs = 60_000;
/** The numbers of processes, of drivers in each, and of callers of each driver. */
const [processes, driversEach, callers] = [3, 3, 4];
const contenders = processes * driversEach * callers;

onQuorum("contenders for a free lock", () => {
  test(`${contenders} at the same moment, each first at another node, all acquire it in turn`, async () => {
    const workers = await startWorkers(await startNodes(), 8);
    const key = newKey();
    using record = new Recording();
    const at = sharedNow() + 300;
    const order = { key, record: record.path, callers, acquire: { ttlMs, waitMs: 20_000 }, holdMs: 1, at };
    const results = await Promise.all(workers.map((worker) => worker.request("takeTurns", order, "done")));
    const entries = record.read();
    expect(entries.map(({ what }) => what)).toEqual(entries.map((_, index) => (index % 2 ? "end" : "begin")));
    expect(entries.filter((_, i) => i % 2).map(({ who }) => who)).toEqual(record.turns());
    expect(new Set(record.turns()).size).toBe(contenders);
    expect(record.turns()).toHaveLength(contenders);
    expectRising(entries.filter((_, i) => i % 2).map(({ fencingToken }) => fencingToken));
    expect(results.map(({ lost }) => lost)).toEqual([0, 0, 0]);
    // Far below the TTL, so no caller waited for an expiry.
    expect(Math.max(...results.flatMap(({ waitedMs }) => waitedMs))).toBeLessThan(ttlMs / 4);
  });

  test(`of ${contenders} tries at the same moment, each first at another node, one wins`, async () => {
    const nodes = await startNodes();
    // No reply is late, so the order of requests decides.
    const workers = await startWorkers(nodes, 50, { nodeTimeoutMs: 1_500 });
    const key = newKey();
    const at = sharedNow() + 100;
    const order = { key, callers, acquire: { ttlMs }, at };
    const results = await Promise.all(workers.map((worker) => worker.request("tryAll", order, "tried")));
    expect(results.flatMap(({ won }) => won)).toHaveLength(1);
    await Promise.all(workers.map((worker) => worker.request("release", { key }, "released")));
    await waitUntil(
      async () => (await holders(nodes, key)).every((holder) => holder === null),
      "the lock is free",
    );
  });

  test.each([3, 4, 5])(
    "two that are each first at their own half of %d nodes settle the tie",
    async (count) => {
      const nodes = await startNodes(count);
      const ledger = new ExclusionChecker();
      const proxies = [await startProxies(nodes), await startProxies(nodes)] as const;
      const [one, other] = proxies.map((proxy) => open(proxy, { nodeTimeoutMs: 5_000 }));
      if (!one || !other) {
        throw new Error("two drivers");
      }
      await Promise.all([warmUp(one), warmUp(other)]);
      const half = count >> 1;
      const key = newKey();
      pause(proxies[0].slice(half));
      pause(proxies[1].slice(0, half));
      const first = one.acquire(key, { ttlMs });
      await waitUntil(
        async () => (await heldOn(nodes.slice(0, half), key)) === half,
        "one contender has its half",
      );
      const second = other.acquire(key, { ttlMs });
      // With an odd number, one more node is kept from both, because the larger half would be a majority.
      const split = nodes.slice(0, half * 2);
      const spare = proxies[1].slice(half * 2);
      pause(spare);
      await waitUntil(async () => (await heldOn(split, key)) === half * 2, "both contenders have a half");
      const tokens = new Set(await holders(split, key));
      expect(tokens.size).toBe(2);
      resume([...proxies[0], ...proxies[1]]);
      const winner = await Promise.race([first, second]);
      ledger.granted(winner);
      await ledger.release(winner);
      const loser = await (winner === (await settled(first)) ? second : first);
      ledger.granted(loser);
      await ledger.release(loser);
      expect(ledger).toMatchObject({ grants: 2, faults: [] });
    },
  );
});

onQuorum("many drivers", () => {
  test("with a node frozen now and then, acquire one after another, with rising numbers", async () => {
    const nodes = await startNodes();
    const ledger = new ExclusionChecker();
    const drivers = Array.from({ length: 4 }, () => open(nodes));
    await Promise.all(drivers.map((locks) => warmUp(locks)));
    const key = newKey();
    let turns = 0;
    const work = drivers.flatMap((locks) =>
      Array.from({ length: 3 }, async () => {
        while (turns < 300) {
          const lease: Lease = ledger.granted(await locks.acquire(key, { ttlMs, waitMs: 20_000 }));
          turns += 1;
          await ledger.release(lease);
        }
      }),
    );
    const meddling = (async () => {
      for (let index = 0; turns < 300; index += 1) {
        const node = nodes[index % nodes.length] as QuorumNode;
        const before = turns;
        node.freeze();
        await waitUntil(
          () => turns > Math.min(before + 15, 299),
          "the contenders continue without that node",
          15_000,
        );
        node.thaw();
        const after = turns;
        await waitUntil(
          () => turns > Math.min(after + 15, 299),
          "the contenders continue with that node",
          15_000,
        );
      }
    })();
    await Promise.all([...work, meddling]);
    expect(ledger.faults).toEqual([]);
    expect(ledger.grants).toBeGreaterThanOrEqual(300);
  });
});

async function startWorkers(
  nodes: readonly QuorumNode[],
  farMs: number,
  redlock: RedlockOptions = {},
): Promise<QuorumWorker[]> {
  const proxies = await Promise.all(
    nodes.map(async (_, near) => nearTo(near, farMs, await startProxies(nodes))),
  );
  const workers = await Promise.all(
    Array.from({ length: processes }, (_, process) => {
      const drivers = Array.from({ length: driversEach }, (_unused, driver) => {
        return proxies[(process * driversEach + driver) % proxies.length] as readonly Proxy[];
      });
      // Without the local queue, every caller contends on its own.
      return QuorumWorker.start({ name: `p${process}`, drivers, redlock, locks: { handover: false } });
    }),
  );
  await Promise.all(workers.map((worker) => worker.request("warmUp", { count: nodes.length }, "warm")));
  return workers;
}

/** The way to the client's own node is shorter than the way to the others. */
function nearTo(near: number, farMs: number, proxies: readonly Proxy[]): readonly Proxy[] {
  for (const [index, proxy] of proxies.entries()) {
    proxy.delay(index === near ? 0 : farMs);
  }
  return proxies;
}

function pause(proxies: readonly Proxy[]): void {
  for (const proxy of proxies) {
    proxy.pause("requests");
  }
}

function resume(proxies: readonly Proxy[]): void {
  for (const proxy of proxies) {
    proxy.resume("requests");
  }
}

async function heldOn(nodes: readonly QuorumNode[], key: string): Promise<number> {
  return (await holders(nodes, key)).filter((holder) => holder !== null).length;
}

function settled<T>(promise: Promise<T>): Promise<T | undefined> {
  return Promise.race([promise, new Promise<undefined>((resolve) => setImmediate(resolve, undefined))]);
}

function expectRising(numbers: readonly bigint[]): void {
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => (a < b ? -1 : 1)));
}
