import type { Locks } from "holdfast";
import { expect, test } from "vitest";
import type { Proxy } from "@holdfast/test-kit";
import { timeFactor } from "@holdfast/test-kit";

import { ExclusionChecker } from "../../support/exclusion-checker.ts";
import {
  awaitSubscribed,
  newKey,
  onQuorum,
  open,
  queued,
  scriptCalls,
  startNodes,
  startProxies,
  warmUp,
  type QuorumNode,
} from "../../support/quorum-servers.ts";
import { awaitAllNodesGrant, frozen, killed, slow } from "./node-faults.ts";

const ttlMs = 60_000;
/** Long enough that waiting for a dead node is noticed. */
const nodeTimeoutMs = 1_000;

onQuorum("a minority of nodes", () => {
  test.each([
    { ...killed, count: 5, away: [3, 4] },
    { ...frozen, count: 5, away: [0, 1] },
    { ...slow, count: 5, away: [1, 3] },
    { ...killed, count: 3, away: [0] },
    { ...frozen, count: 4, away: [2] },
    { ...slow, count: 3, away: [2] },
  ])(
    "$how: of $count nodes those at $away are not awaited, and vote again afterwards",
    async ({ count, away, begin, end }) => {
      const nodes = await startNodes(count);
      const proxies = [await startProxies(nodes), await startProxies(nodes)] as const;
      const [here, there] = proxies.map((proxy) => open(proxy, { nodeTimeoutMs, commandTimeoutMs: 500 })) as [
        Locks,
        Locks,
      ];
      await Promise.all([warmUp(here), warmUp(there)]);
      const awayNodes = away.map((index) => nodes[index] as QuorumNode);
      const theirWays = proxies.map((proxy) => away.map((index) => proxy[index] as Proxy));
      const ledger = new ExclusionChecker();

      await begin(awayNodes, theirWays);
      // A client may wait once in a turn for a node that never answers.
      const waits = await turnsOf([here, there], ledger, 8);
      expect(waits.filter((ms) => ms > nodeTimeoutMs * 0.9).length).toBeLessThanOrEqual(2);
      expect(Math.max(...waits)).toBeLessThan(nodeTimeoutMs * 3 * timeFactor);
      expect(await here.tryAcquire(newKey(), { ttlMs }).then((lease) => lease?.release())).toBe(true);
      await handOver(
        here,
        there,
        ledger,
        nodes.filter((node) => !awayNodes.includes(node)),
      );

      await end(awayNodes, theirWays);
      for (const locks of [here, there]) {
        await awaitSubscribed(locks);
        await awaitAllNodesGrant(locks, nodes);
      }
      await turnsOf([here, there], ledger, 2);
      expect(ledger.faults).toEqual([]);
    },
  );

  test("of which one is frozen: 2 000 acquisitions do not pile up for it", async () => {
    const nodes = await startNodes();
    const locks = open(nodes, { commandTimeoutMs: 500 });
    await warmUp(locks);
    const [frozenNode] = nodes as [QuorumNode];
    const before = await Promise.all(nodes.map(scriptCalls));
    frozenNode.freeze();
    const turns = 2_000;
    let done = 0;
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        for (; done < turns; done += 1) {
          await locks.withLock(newKey(), { ttlMs }, () => undefined);
        }
      }),
    );
    frozenNode.thaw();
    await awaitAllNodesGrant(locks, nodes);
    await awaitSubscribed(locks);
    const calls = await Promise.all(
      nodes.map(async (node, i) => (await scriptCalls(node)) - (before[i] ?? 0)),
    );
    expect(Math.min(...calls.slice(1))).toBeGreaterThan(200); // many turns travel in one call
    expect(calls[0]).toBeLessThan(100);
  });
});

/** Runs `count` turns of each driver, on a shared key and on a key of its own. Returns how long each turn took. */
async function turnsOf(
  drivers: readonly Locks[],
  ledger: ExclusionChecker,
  count: number,
): Promise<number[]> {
  const shared = newKey();
  const waits: number[] = [];
  for (let turn = 0; turn < count; turn += 1) {
    for (const locks of drivers) {
      for (const key of [shared, newKey()]) {
        const begun = performance.now();
        const lease = ledger.granted(await locks.acquire(key, { ttlMs }));
        expect(await ledger.release(lease)).toBe(true);
        waits.push(performance.now() - begun);
      }
    }
  }
  return waits;
}

/** A waiter acquires the lock by a release. */
async function handOver(
  here: Locks,
  there: Locks,
  ledger: ExclusionChecker,
  alive: readonly QuorumNode[],
): Promise<void> {
  const key = newKey();
  const lease = ledger.granted(await here.acquire(key, { ttlMs }));
  const waiting = there.acquire(key, { ttlMs, waitMs: 20_000 });
  await queued(alive, key, 1);
  const releasedAt = performance.now();
  expect(await ledger.release(lease)).toBe(true);
  const next = ledger.granted(await waiting);
  expect(performance.now() - releasedAt).toBeLessThan(nodeTimeoutMs * 3 * timeFactor);
  await ledger.release(next);
}
