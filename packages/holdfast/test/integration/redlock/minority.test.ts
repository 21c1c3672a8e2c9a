import { setTimeout as pause } from "node:timers/promises";

import type { Locks } from "holdfast";
import { expect, test } from "vitest";
import { type Proxy, rejection, waitUntil } from "@holdfast/test-kit";

import {
  connect,
  durable,
  awaitSubscribed,
  holders,
  ExclusionChecker,
  newKey,
  expectNoResidue,
  onQuorum,
  open,
  queued,
  scriptCalls,
  startNodes,
  startProxies,
  votesOf,
  warmUp,
  type QuorumNode,
} from "../../support/quorum-servers.ts";

const ttlMs = 60_000;
/** So long that whoever waits for a dead node is seen. */
const nodeTimeoutMs = 1_000;

interface MinorityFault {
  readonly how: string;
  begin(nodes: readonly QuorumNode[], proxies: readonly (readonly Proxy[])[]): Promise<void>;
  end(nodes: readonly QuorumNode[], proxies: readonly (readonly Proxy[])[]): Promise<void>;
}

const killed: MinorityFault = {
  how: "killed",
  begin: async (nodes) => void (await Promise.all(nodes.map((node) => node.kill()))),
  end: async (nodes) => void (await Promise.all(nodes.map((node) => node.restart(durable)))),
};
const frozen: MinorityFault = {
  how: "frozen",
  begin: async (nodes) => {
    for (const node of nodes) {
      node.freeze();
    }
  },
  end: async (nodes) => {
    for (const node of nodes) {
      node.thaw();
    }
  },
};
const slow: MinorityFault = {
  how: "answering after a second",
  begin: async (_nodes, proxies) => {
    setDelay(proxies, 500); // each way
  },
  end: async (_nodes, proxies) => {
    setDelay(proxies, 0);
    for (const proxy of proxies.flat()) {
      proxy.cut(); // or bytes that are under way would be overtaken
    }
  },
};

onQuorum("a minority of nodes", () => {
  test.each([
    { ...killed, count: 5, away: [3, 4] },
    { ...frozen, count: 5, away: [0, 1] },
    { ...slow, count: 5, away: [1, 3] },
    { ...killed, count: 3, away: [0] },
    { ...frozen, count: 4, away: [2] },
    { ...slow, count: 3, away: [2] },
  ])(
    "$how: of $count nodes those at $away are not waited for, and take part again afterwards",
    async ({ count, away, begin, end }) => {
      const nodes = await startNodes(count);
      const proxies = [await startProxies(nodes), await startProxies(nodes)] as const;
      const [here, there] = proxies.map((proxy) => open(proxy, { nodeTimeoutMs, commandTimeoutMs: 500 })) as [
        Locks,
        Locks,
      ];
      await Promise.all([warmUp(here), warmUp(there)]);
      const gone = away.map((index) => nodes[index] as QuorumNode);
      const theirWays = proxies.map((proxy) => away.map((index) => proxy[index] as Proxy));
      const ledger = new ExclusionChecker();

      await begin(gone, theirWays);
      // A node that never answers may be waited for once in a turn.
      const waits = await turnsOf([here, there], ledger, 8);
      expect(waits.filter((ms) => ms > nodeTimeoutMs * 0.9).length).toBeLessThanOrEqual(2);
      expect(Math.max(...waits)).toBeLessThan(nodeTimeoutMs * 3);
      expect(await here.tryAcquire(newKey(), { ttlMs }).then((lease) => lease?.release())).toBe(true);
      await handOver(
        here,
        there,
        ledger,
        nodes.filter((node) => !gone.includes(node)),
      );

      await end(gone, theirWays);
      for (const locks of [here, there]) {
        await awaitSubscribed(locks);
        await takesPart(locks, nodes);
      }
      await turnsOf([here, there], ledger, 2);
      expect(ledger.faults).toEqual([]);
    },
  );

  test("of which one is frozen: 2 000 acquisitions do not pile up before it", async () => {
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
    await takesPart(locks, nodes);
    await awaitSubscribed(locks);
    const calls = await Promise.all(
      nodes.map(async (node, i) => (await scriptCalls(node)) - (before[i] ?? 0)),
    );
    expect(Math.min(...calls.slice(1))).toBeGreaterThan(200); // many turns travel in one call
    expect(calls[0]).toBeLessThan(100);
  });
});

onQuorum("a majority of nodes", () => {
  test.each([killed, frozen])(
    "$how: says at waitMs what each node said, and leaves nothing",
    async ({ begin, end }) => {
      const nodes = await startNodes();
      const gone = nodes.slice(2);
      const locks = open(nodes, { commandTimeoutMs: 500 });
      await warmUp(locks);
      await begin(gone, []);
      const key = newKey();
      const waitMs = 1_500;
      const { error, afterMs } = await rejection(locks.acquire(key, { ttlMs, waitMs }));
      expect(afterMs).toBeGreaterThan(waitMs - 20);
      expect(afterMs).toBeLessThan(waitMs + 2_000);
      expectVotes(error, nodes);
      expect(error).toMatchObject({ key, retryable: true });

      const tried = await rejection(locks.tryAcquire(newKey(), { ttlMs }));
      expectVotes(tried.error, nodes);
      expect(tried.afterMs).toBeLessThan(3_000); // a node timeout, and far below the TTL
      await expectNoResidue(nodes.slice(0, 2)); // what those granted is taken back at once

      await end(gone, []);
      await expectNoResidue(nodes);
      await awaitSubscribed(locks);
      await takesPart(locks, nodes);
    },
  );

  test("frozen after they have granted: a release that they do not hear is repeated until they do", async () => {
    const nodes = await startNodes();
    const locks = open(nodes, { commandTimeoutMs: 500 });
    await warmUp(locks);
    const key = newKey();
    const lease = await locks.acquire(key, { ttlMs });
    await waitUntil(
      async () => (await holders(nodes, key)).every((holder) => holder !== null),
      "all have it",
    );
    const gone = nodes.slice(2);
    await frozen.begin(gone, []);
    const { error, afterMs } = await rejection(lease.release());
    expectVotes(error, nodes);
    expect(error).toMatchObject({ outcome: "unknown" });
    expect(afterMs).toBeLessThan(3_000);
    await frozen.end(gone, []);
    await expectNoResidue(nodes);
  });

  test("frozen while one waits: what it has left of its place is taken back when they return", async () => {
    const nodes = await startNodes();
    const [here, there] = [open(nodes), open(nodes, { commandTimeoutMs: 500 })];
    await Promise.all([warmUp(here), warmUp(there)]);
    const key = newKey();
    const lease = await here.acquire(key, { ttlMs });
    const waiting = rejection(there.acquire(key, { waitMs: 2_000 }));
    await queued(nodes, key, 1);
    const gone = nodes.slice(2);
    await frozen.begin(gone, []);
    const { error } = await waiting;
    expect(error).toMatchObject({ retryable: true });
    await frozen.end(gone, []);
    await queued(nodes, key, 0);
    expect(await lease.release()).toBe(true);
  });

  test("that answers with what is none of ours is told as an error, and nothing escapes", async () => {
    const nodes = await startNodes();
    const clients = nodes.map((node) => connect(node));
    const locks = open(nodes, { commandTimeoutMs: 500 }, {}, clients);
    await warmUp(locks);
    for (const client of clients.slice(2)) {
      client.call = (() => pause(20, [])) as typeof client.call;
    }
    const { error } = await rejection(locks.acquire(newKey(), { ttlMs, waitMs: 500 }));
    expect(votesOf(error).map(({ vote }) => vote)).toEqual(["granted", "granted", "error", "error", "error"]);
  });

  test("gone from the start: a client that never met them says so, and works once they are there", async () => {
    const nodes = await startNodes();
    const gone = nodes.slice(2);
    await killed.begin(gone, []);
    const locks = open(nodes, { commandTimeoutMs: 500 });
    const { error, afterMs } = await rejection(locks.acquire(newKey(), { waitMs: 1_200, ttlMs }));
    expect(votesOf(error).map(({ node }) => node)).toEqual(nodes.map(nameOf));
    expect(error).toMatchObject({ retryable: true });
    expect(afterMs).toBeLessThan(4_000);
    await killed.end(gone, []);
    await takesPart(locks, nodes);
  });
});

/** So many turns of each, one after another, of a key for all and one for each: how long each turn took. */
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

/** Who waits gets it by the release, as ever. */
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
  expect(performance.now() - releasedAt).toBeLessThan(nodeTimeoutMs * 3);
  await ledger.release(next);
}

/** All nodes grant again. */
async function takesPart(locks: Locks, nodes: readonly QuorumNode[]): Promise<void> {
  const key = newKey();
  await waitUntil(
    async () => {
      const lease = await locks.tryAcquire(key, { ttlMs }).catch(() => null);
      const granted = await holders(nodes, key);
      await lease?.release();
      return lease !== null && granted.every((holder) => holder !== null);
    },
    "every node grants again",
    20_000,
  );
}

function expectVotes(error: unknown, nodes: readonly QuorumNode[]): void {
  const votes = votesOf(error);
  expect(votes.map(({ node }) => node)).toEqual(nodes.map(nameOf));
  for (const { vote, latencyMs, reason } of votes.slice(0, 2)) {
    expect([vote, reason]).toEqual(["granted", null]);
    expect(latencyMs).toBeGreaterThan(0);
  }
  for (const { vote, latencyMs, reason } of votes.slice(2)) {
    expect(["timeout", "error"]).toContain(vote);
    expect(latencyMs).toBeNull();
    expect(reason).toMatch(/\w/);
  }
}

function setDelay(proxies: readonly (readonly Proxy[])[], ms: number): void {
  for (const proxy of proxies.flat()) {
    proxy.delay(ms);
  }
}

function nameOf({ port }: QuorumNode): string {
  return `127.0.0.1:${port}/0`;
}
