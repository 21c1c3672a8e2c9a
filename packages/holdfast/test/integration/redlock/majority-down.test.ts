import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { rejection, timeFactor, waitUntil } from "@holdfast/test-kit";

import {
  connect,
  awaitSubscribed,
  holders,
  newKey,
  expectNoResidue,
  onQuorum,
  open,
  queued,
  startNodes,
  votesOf,
  warmUp,
  type QuorumNode,
} from "../../support/quorum-servers.ts";
import { awaitAllNodesGrant, frozen, killed } from "./node-faults.ts";

const ttlMs = 60_000;

onQuorum("a majority of nodes", () => {
  test.each([killed, frozen])(
    "$how: the error at waitMs has each node's vote, and no residue stays",
    async ({ begin, end }) => {
      const nodes = await startNodes();
      const down = nodes.slice(2);
      const locks = open(nodes, { nodeTimeoutMs: 300, commandTimeoutMs: 500 });
      await warmUp(locks);
      await begin(down, []);
      const key = newKey();
      const waitMs = 1_500;
      const { error, afterMs } = await rejection(locks.acquire(key, { ttlMs, waitMs }));
      expect(afterMs).toBeGreaterThan(waitMs - 20);
      expect(afterMs).toBeLessThan(waitMs + 2_000 * timeFactor);
      expectVotes(error, nodes);
      expect(error).toMatchObject({ key, retryable: true });

      const tried = await rejection(locks.tryAcquire(newKey(), { ttlMs }));
      expectVotes(tried.error, nodes);
      expect(tried.afterMs).toBeLessThan(3_000 * timeFactor); // at most some node timeouts, far below the TTL
      await expectNoResidue(nodes.slice(0, 2)); // the grants of these nodes are cleaned up at once

      await end(down, []);
      await expectNoResidue(nodes);
      await awaitSubscribed(locks);
      await awaitAllNodesGrant(locks, nodes);
    },
  );

  test("frozen after they have granted: a release without a reply is repeated until the nodes reply", async () => {
    const nodes = await startNodes();
    const locks = open(nodes, { nodeTimeoutMs: 300, commandTimeoutMs: 500 });
    await warmUp(locks);
    const key = newKey();
    const lease = await locks.acquire(key, { ttlMs });
    await waitUntil(
      async () => (await holders(nodes, key)).every((holder) => holder !== null),
      "all nodes have the grant",
    );
    const down = nodes.slice(2);
    await frozen.begin(down, []);
    const { error, afterMs } = await rejection(lease.release());
    expectVotes(error, nodes);
    expect(error).toMatchObject({ outcome: "unknown" });
    expect(afterMs).toBeLessThan(3_000 * timeFactor);
    await frozen.end(down, []);
    await expectNoResidue(nodes);
  });

  test("frozen while a waiter is queued: its queue entries are removed when the nodes return", async () => {
    const nodes = await startNodes();
    const [here, there] = [open(nodes), open(nodes, { commandTimeoutMs: 500 })];
    await Promise.all([warmUp(here), warmUp(there)]);
    const key = newKey();
    const lease = await here.acquire(key, { ttlMs });
    const waiting = rejection(there.acquire(key, { waitMs: 2_000 }));
    await queued(nodes, key, 1);
    const down = nodes.slice(2);
    await frozen.begin(down, []);
    const { error } = await waiting;
    expect(error).toMatchObject({ retryable: true });
    await frozen.end(down, []);
    await queued(nodes, key, 0);
    expect(await lease.release()).toBe(true);
  });

  test("with malformed replies causes an error, and no exception escapes", async () => {
    const nodes = await startNodes();
    const clients = nodes.map((node) => connect(node));
    const locks = open(nodes, { nodeTimeoutMs: 300, commandTimeoutMs: 500 }, {}, clients);
    await warmUp(locks);
    for (const client of clients.slice(2)) {
      client.call = (() => pause(20, [])) as typeof client.call;
    }
    const { error } = await rejection(locks.acquire(newKey(), { ttlMs, waitMs: 500 }));
    expect(votesOf(error).map(({ vote }) => vote)).toEqual(["granted", "granted", "error", "error", "error"]);
  });

  test("down from the start: a new client reports each node, and works once the nodes are up", async () => {
    const nodes = await startNodes();
    const down = nodes.slice(2);
    await killed.begin(down, []);
    const locks = open(nodes, { commandTimeoutMs: 500 });
    const { error, afterMs } = await rejection(locks.acquire(newKey(), { waitMs: 1_200, ttlMs }));
    expect(votesOf(error).map(({ node }) => node)).toEqual(nodes.map(nameOf));
    expect(error).toMatchObject({ retryable: true });
    expect(afterMs).toBeLessThan(4_000 * timeFactor);
    await killed.end(down, []);
    await awaitAllNodesGrant(locks, nodes);
  });
});

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

function nameOf({ port }: QuorumNode): string {
  return `127.0.0.1:${port}/0`;
}
