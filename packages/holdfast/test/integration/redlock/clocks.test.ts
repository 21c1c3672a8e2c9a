import type { Locks } from "holdfast";
import { expect, test } from "vitest";
import { limitMs, type Proxy, type RedisServer, startRedis, rejection, waitUntil } from "@holdfast/test-kit";

import { makeClocks } from "../../support/clocks.ts";
import { describeWithClocks } from "../../support/servers.ts";
import { ExclusionChecker } from "../../support/exclusion-checker.ts";
import {
  disconnect,
  awaitSubscribed,
  holders,
  newKey,
  onQuorum,
  open,
  closeAndExpectNoResidue,
  reconnect,
  startNodes,
  startProxies,
  votesOf,
  warmUp,
  type QuorumNode,
} from "../../support/quorum-servers.ts";
import { startTimed } from "./timed-nodes.ts";

const waitMs = 25_000;
/** The largest TTL here. */
const maxTtlMs = 1_500;
const patient = { nodeTimeoutMs: 500, maxTtlMs };
const stepMs = 10_000;

describeWithClocks("servers with clocks of their own", () => {
  onQuorum("the shim", () => {
    test("sets the time of one server, forward and back, and makes it run fast", async () => {
      const { nodes, clocks } = await startTimed(2);
      const [node, other] = nodes as [QuorumNode, QuorumNode];
      const apartMs = async (): Promise<number> => {
        const [own, others] = await Promise.all([node.direct.time(), other.direct.time()]);
        return millis(own) - millis(others);
      };
      expect(Math.abs(await apartMs())).toBeLessThan(1_000);
      clocks[0]?.set({ aheadMs: stepMs });
      expect(Math.abs((await apartMs()) - stepMs)).toBeLessThan(1_000);
      clocks[0]?.set({ aheadMs: -stepMs });
      expect(Math.abs((await apartMs()) + stepMs)).toBeLessThan(1_000);
      clocks[0]?.set({ rate: 101 });
      await waitUntil(async () => (await apartMs()) > 5_000, "the clock runs away");
    });
  });

  onQuorum("a node whose clock is stepped under a held lock", () => {
    test.each([200, 500])(
      "forward by %i ms gives no second holder while the first may use its lease",
      async (aheadMs) => {
        const { nodes, clocks } = await startTimed(3);
        const proxies = [await startProxies(nodes), await startProxies(nodes)] as const;
        const options = { ...patient, maxClockDifferenceMs: aheadMs + 50 };
        const [one, other] = proxies.map((proxy) => open(proxy, options)) as [Locks, Locks];
        const ledger = new ExclusionChecker();
        await Promise.all([warmUp(one), warmUp(other)]);
        await closeAndExpectNoResidue([one, other], nodes);
        disconnect(proxies[0].slice(2));
        disconnect(proxies[1].slice(1, 2));
        const key = newKey();
        const lease = ledger.granted(await one.acquire(key, { ttlMs: maxTtlMs, renew: false }));
        clocks[0]?.set({ aheadMs });
        const next = ledger.granted(await other.acquire(key, { ttlMs: maxTtlMs, waitMs }));
        expect(lease.remainingMs()).toBe(0);
        reconnect(proxies.flat());
        await ledger.release(next);
        await Promise.all([awaitSubscribed(one, 3), awaitSubscribed(other, 3)]);
        expect(ledger).toMatchObject({ grants: 2, faults: [] });
      },
    );

    test.each([
      { what: "forward", aheadMs: stepMs, away: [0] },
      { what: "forward", aheadMs: stepMs, away: [0, 1] },
      { what: "back", aheadMs: -stepMs, away: [0] },
    ])("$what gives no second holder to a client that does not reach $away", async ({ aheadMs, away }) => {
      const { nodes, clocks } = await startTimed(5);
      const middle = nodes[2] as QuorumNode;
      const proxies = [await startProxies(nodes), await startProxies(nodes)] as const;
      const [one, other] = proxies.map((proxy) => open(proxy, patient)) as [Locks, Locks];
      const ledger = new ExclusionChecker();
      await Promise.all([warmUp(one), warmUp(other)]);
      await closeAndExpectNoResidue([one, other], nodes);
      disconnect(proxies[0].slice(3));
      disconnect(away.map((index) => proxies[1][index] as Proxy));
      const key = newKey();
      const lease = ledger.granted(await one.acquire(key, { ttlMs: maxTtlMs, renew: false }));
      expect(await middle.holder(key)).not.toBeNull();
      clocks[2]?.set({ aheadMs });
      if (aheadMs > 0) {
        expect(await middle.holder(key)).toBeNull(); // by this node's clock the TTL has ended
      }
      const { error } = await rejection(other.acquire(key, { ttlMs: maxTtlMs, waitMs: 600 }));
      expect(error).toMatchObject({ key, retryable: true });
      expect(lease.remainingMs()).toBeGreaterThan(0);
      if (away.length === 1) {
        await awaitClockReported(other, 2); // three nodes agree on the time; of two nodes, neither is known to be right
      }
      reconnect(proxies.flat());
      const next = ledger.granted(await other.acquire(key, { ttlMs: maxTtlMs, waitMs }));
      expect(lease.remainingMs()).toBe(0);
      await awaitClockReported(other, 2);
      await ledger.release(next);
      expect(ledger).toMatchObject({ grants: 2, faults: [] });
      clocks[2]?.set({});
    });

    test("votes again as soon as the clock is right", async () => {
      const { nodes, clocks } = await startTimed(3);
      const options = { ...patient, maxTtlMs: 300 };
      const locks = open(nodes, options);
      await warmUp(locks);
      clocks[1]?.set({ aheadMs: stepMs });
      await awaitClockReported(locks, 1);
      clocks[1]?.set({});
      await waitUntil(
        async () => (await locks.admin.nodes())[1]?.quarantine === null,
        "the node votes again",
        1_000,
      );
      nodes[2]?.freeze();
      const lease = await locks.acquire(newKey(), { ttlMs: 300, waitMs });
      await lease.release();
      nodes[2]?.thaw();
    });

    test("forward and back is left out while many contend: one holder after another, with rising numbers", async () => {
      const { nodes, clocks } = await startTimed(5);
      const drivers = Array.from({ length: 4 }, () => open(nodes, patient));
      await Promise.all(drivers.map((locks) => warmUp(locks)));
      const ledger = new ExclusionChecker();
      const key = newKey();
      let isOver = false;
      const work = drivers.flatMap((locks) =>
        Array.from({ length: 2 }, async () => {
          while (!isOver) {
            const lease = ledger.granted(await locks.acquire(key, { ttlMs: 400, waitMs, renew: false }));
            if (ledger.grants % 20 === 0) {
              await waitUntil(() => lease.remainingMs() === 0, "its validity has ended"); // a lease that is never released
              lease.orphan();
            } else {
              await ledger.release(lease);
            }
          }
        }),
      );
      const further = async (count: number): Promise<void> => {
        const wanted = ledger.grants + count;
        await waitUntil(() => ledger.grants >= wanted, "the contenders continue", limitMs(20_000));
      };
      for (const aheadMs of [stepMs, -stepMs]) {
        await further(25);
        clocks[1]?.set({ aheadMs });
        await Promise.all(drivers.map((locks) => awaitClockReported(locks, 1)));
        await further(25);
      }
      isOver = true;
      await Promise.all(work);
      expect(ledger.faults).toEqual([]);
      clocks[1]?.set({});
    });
  });

  onQuorum("a node that was started with its clock ahead, which was set right since", () => {
    /** The uptime is negative, because the start lies in the future. The other nodes were started an hour ago. */
    async function startedAhead(): Promise<QuorumNode[]> {
      const clocks = await makeClocks(3);
      for (const [index, clock] of clocks.entries()) {
        clock.set({ aheadMs: index === 2 ? stepMs : -3_600_000 });
      }
      const start = (given: string[], index: number): Promise<RedisServer> =>
        startRedis({ args: given, env: clocks[index]?.env ?? {} });
      const nodes = await startNodes(3, { args: [], start });
      for (const clock of clocks) {
        clock.set({});
      }
      return nodes;
    }

    test("may have lost data for as long as a node that was started just now", async () => {
      const locks = open(await startedAhead(), { restartGuard: "wait" });
      await warmUp(locks);
      const [, , state] = await locks.admin.nodes();
      expect(state?.uptimeMs).toBeLessThan(0);
      expect(state?.quarantine).toEqual({
        reason: expect.stringContaining("forgotten") as unknown,
        remainingMs: expect.toSatisfy((ms: number) => ms > 50_000 && ms <= 63_000) as unknown,
      });
    });

    test("does not count after an empty restart, for a client that knew the node before", async () => {
      const nodes = await startedAhead();
      const proxies = await startProxies(nodes);
      const locks = open(proxies, { nodeTimeoutMs: 300, commandTimeoutMs: 700, restartGuard: "wait" });
      await warmUp(locks);
      const [, , before] = await locks.admin.nodes();
      await nodes[2]?.restart();
      await waitUntil(async () => {
        const [, , state] = await locks.admin.nodes();
        return (
          state?.reachable === true && state.runId !== before?.runId && state.quarantine?.remainingMs !== null
        );
      }, "the restart is known");
      disconnect(proxies.slice(0, 1));
      const { error } = await rejection(locks.tryAcquire(newKey()));
      expect(votesOf(error)[2]).toMatchObject({
        vote: "quarantined",
        reason: expect.stringContaining("forgotten") as unknown,
      });
    });
  });

  onQuorum("a node whose clock runs 1 % fast", () => {
    test("gives no second holder while the first may use its lease", async () => {
      expect(await overtake(1.01)).toEqual({ leftMs: 0, faults: [] });
    });

    test("continues to vote while many contend: one holder after another, with rising numbers", async () => {
      const { nodes, clocks } = await startTimed(3);
      clocks[0]?.set({ rate: 1.01 });
      const drivers = Array.from({ length: 3 }, () => open(nodes, patient));
      await Promise.all(drivers.map((locks) => warmUp(locks)));
      const ledger = new ExclusionChecker();
      const key = newKey();
      const endsAt = performance.now() + 2_000;
      await Promise.all(
        drivers.map(async (locks) => {
          while (performance.now() < endsAt) {
            const lease = ledger.granted(await locks.acquire(key, { ttlMs: 500, waitMs, renew: false }));
            if (ledger.grants % 8 === 0) {
              await waitUntil(() => lease.remainingMs() === 0, "its validity has ended");
              lease.orphan();
            } else {
              await ledger.release(lease);
            }
          }
        }),
      );
      expect(ledger.grants).toBeGreaterThan(5);
      expect(ledger.faults).toEqual([]);
      for (const locks of drivers) {
        expect((await locks.admin.nodes()).map(({ quarantine }) => quarantine)).toEqual([null, null, null]);
      }
    });
  });
});

/**
 * One client reaches A, B and C. Another reaches C, D and E, and acquires the lock when C has expired the first
 * lease by its clock of this rate. Returns the remaining validity of the first lease at that moment.
 */
async function overtake(rate: number): Promise<{ leftMs: number; faults: readonly string[] }> {
  // Without a disk to wait for, because the result is decided within 50 ms.
  const { nodes, clocks } = await startTimed(5, []);
  const proxies: readonly (readonly Proxy[])[] = [await startProxies(nodes), await startProxies(nodes)];
  const [one, other] = proxies.map((proxy) => open(proxy, { nodeTimeoutMs: 500, restartGuard: "off" })) as [
    Locks,
    Locks,
  ];
  await Promise.all([warmUp(one), warmUp(other)]);
  await closeAndExpectNoResidue([one, other], nodes);
  disconnect(proxies[0]?.slice(3) ?? []);
  disconnect(proxies[1]?.slice(0, 2) ?? []);
  clocks[2]?.set({ rate });
  const key = newKey();
  const ledger = new ExclusionChecker();
  const ttlMs = 5_000; // 1 % of this is long enough to be measured
  const lease = ledger.granted(await one.acquire(key, { ttlMs, renew: false }));
  await waitUntil(async () => (await nodes[2]?.holder(key)) === null, "the grant has expired on C", 10_000);
  const next = ledger.granted(await other.acquire(key, { ttlMs, waitMs }));
  const leftMs = lease.remainingMs();
  await ledger.release(next);
  await waitUntil(
    async () => (await holders(nodes, key)).every((holder) => holder === null),
    "the lock is free",
  );
  await awaitSubscribed(other, 3);
  return { leftMs, faults: ledger.faults };
}

/** Waits until a driver reports that this node does not vote, with the reason. */
async function awaitClockReported(locks: Locks, index: number): Promise<void> {
  await waitUntil(
    async () => (await locks.admin.nodes())[index]?.quarantine?.reason.includes("clock") === true,
    "the clock is reported as off",
  );
}

function millis([seconds, micros]: readonly (number | string)[]): number {
  return Number(seconds) * 1_000 + Number(micros) / 1_000;
}
