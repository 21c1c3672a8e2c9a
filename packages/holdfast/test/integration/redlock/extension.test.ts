import { expect, test } from "vitest";
import { abortOf, rejection, timeFactor, waitUntil } from "@holdfast/test-kit";

import { ExclusionChecker } from "../../support/exclusion-checker.ts";
import {
  awaitSubscribed,
  holders,
  newKey,
  onLongUpQuorum,
  onQuorum,
  open,
  startLongUpNodes,
  startNodes,
  votesOf,
  warmUp,
  type QuorumNode,
} from "../../support/quorum-servers.ts";
import { awaitHeldOnAll, lossReasonOf } from "./lease-checks.ts";

const ttlMs = 60_000;
const waitMs = 25_000;
/** A busy machine makes no node time out. */
const patient = { nodeTimeoutMs: 1_000 };
/** How late a timer may be on a busy machine. */
const slackMs = 2_000 * timeFactor;

/** How long before the end of the validity a signal may abort: see timer-lateness.ts. */
const longestLeadMs = 51;

onLongUpQuorum("a lease that a minority has lost", () => {
  test("is kept while every node in turn restarts empty and is refilled", async () => {
    const nodes = await startNodes(3, { args: [] });
    const locks = open(nodes, patient);
    await warmUp(locks);
    const ledger = new ExclusionChecker();
    const key = newKey();
    const lease = ledger.granted(await locks.acquire(key, { ttlMs }));
    const [token] = await holders(nodes, key);
    await awaitHeldOnAll(nodes, key, token);
    for (const node of nodes) {
      await node.restart();
      await awaitSubscribed(locks);
      await lease.extend(); // refills the node
      await awaitHeldOnAll(nodes, key, token);
      await lease.extend(); // counts the node
    }
    expect(lease.remainingMs()).toBeGreaterThan(ttlMs / 2);
    expect(await ledger.release(lease)).toBe(true);
    const next = ledger.granted(await locks.acquire(key, { ttlMs }));
    await ledger.release(next);
    expect(ledger.faults).toEqual([]);
  });

  test("counts a refilled node from the next extension on, and not while the node may have lost data", async () => {
    const nodes = await startLongUpNodes(3);
    const [restarted, away] = nodes as [QuorumNode, QuorumNode, QuorumNode];
    const locks = open(nodes, { ...patient, restartGuard: "wait" });
    await warmUp(locks);
    const ledger = new ExclusionChecker();
    const key = newKey();
    const lease = ledger.granted(await locks.acquire(key, { ttlMs: 6_000, renew: false }));
    const [token] = await holders(nodes, key);
    await awaitHeldOnAll(nodes, key, token);
    await restarted.restart(); // and does not vote for a minute
    await awaitSubscribed(locks);
    await lease.extend();
    await awaitHeldOnAll(nodes, key, token);
    const { validUntil } = lease;
    away.freeze();
    const { error } = await rejection(lease.extend());
    expect(votesOf(error).map(({ vote }) => vote)).toEqual(["quarantined", "timeout", "granted"]);
    expect(lease.validUntil).toBe(validUntil);
    expect(lease.remainingMs()).toBeGreaterThan(0);
    away.thaw();
    await waitUntil(
      () =>
        lease.extend().then(
          () => true,
          () => false,
        ),
      "two nodes answer again",
    );
    expect(lease.validUntil).toBeGreaterThan(validUntil);
    expect(await ledger.release(lease)).toBe(true);
  });

  test("counts refilled nodes after the others have lost it", async () => {
    const nodes = await startNodes(5, { args: [] });
    const locks = open(nodes, patient);
    await warmUp(locks);
    const key = newKey();
    const lease = await locks.acquire(key, { ttlMs });
    const [token] = await holders(nodes, key);
    await awaitHeldOnAll(nodes, key, token);
    const [a, b, c, d] = nodes as [QuorumNode, QuorumNode, QuorumNode, QuorumNode, QuorumNode];
    for (const losing of [
      [a, b],
      [c, d],
    ]) {
      await Promise.all(losing.map((node) => node.loseData(key)));
      await lease.extend();
      await awaitHeldOnAll(nodes, key, token);
      await lease.extend();
    }
    await Promise.all([c, d].map((node) => node.kill()));
    await lease.extend(); // by one node that always had the grant, and two refilled nodes
    expect(lease.remainingMs()).toBeGreaterThan(ttlMs / 2);
    expect(await lease.release()).toBe(true);
  });
});

onLongUpQuorum("a lease that a majority has lost", () => {
  test.each([
    ["forgotten", "expired"],
    ["acquired by another", "stolen"],
  ])("is reported lost at the next renewal: %s", async (how, reason) => {
    const nodes = await startNodes();
    const locks = open(nodes, patient);
    await warmUp(locks);
    const key = newKey();
    const lease = await locks.acquire(key, { ttlMs: 3_000 });
    await waitUntil(
      async () => (await holders(nodes, key)).every((holder) => holder !== null),
      "all nodes have the grant",
    );
    const aborted = abortOf(lease.signal);
    const changedAt = performance.now();
    await Promise.all(
      nodes.slice(2).map(async (node) => {
        await (how === "forgotten"
          ? node.loseData(key)
          : node.direct.set(`lock:${key}`, "another's", "PX", 1_500));
      }),
    );
    expect((await aborted) - changedAt).toBeLessThan(1_000 + slackMs); // the validity would end after 3 s
    expect(lossReasonOf(lease)).toBe(reason);
    expect(lease.remainingMs()).toBe(0);
    expect(await lease.release()).toBe(false);
  });

  test("by restarts, one within another's quarantine, ends with its validity, without a second holder", async () => {
    const nodes = await startLongUpNodes(3);
    const options = { ...patient, maxTtlMs: 800, restartGuard: "wait" } as const;
    const [locks, other] = [open(nodes, options), open(nodes, options)];
    await Promise.all([warmUp(locks), warmUp(other)]);
    const ledger = new ExclusionChecker();
    const key = newKey();
    const lease = ledger.granted(await locks.acquire(key, { ttlMs: 800 }));
    const lost = abortOf(lease.signal);
    await Promise.all(nodes.slice(1).map((node) => node.restart()));
    const next = ledger.granted(await other.acquire(key, { ttlMs: 800, waitMs }));
    expect(await lost).toBeLessThan(performance.now());
    expect(await ledger.release(next)).toBe(true);
    expect(ledger.faults).toEqual([]);
  });
});

onQuorum("a lease whose majority is unresponsive", () => {
  test("continues if the majority answers before the validity ends", async () => {
    const nodes = await startNodes();
    const locks = open(nodes, { nodeTimeoutMs: 300, commandTimeoutMs: 500 });
    await warmUp(locks);
    const lease = await locks.acquire(newKey(), { ttlMs: 6_000 });
    const { validUntil } = lease;
    for (const node of nodes.slice(2)) {
      node.freeze();
    }
    const { error } = await rejection(lease.extend());
    expect(error).toMatchObject({ code: "quorum-not-reached", outcome: "unknown" });
    expect(lease.signal.aborted).toBe(false);
    expect(lease.validUntil).toBe(validUntil);
    for (const node of nodes.slice(2)) {
      node.thaw();
    }
    await waitUntil(() => lease.validUntil > validUntil, "the watchdog renews it", 5_900);
    expect(lease.signal.aborted).toBe(false);
    expect(await lease.release()).toBe(true);
  });

  test("is lost when its validity ends, and not long before", async () => {
    const nodes = await startNodes();
    const options = { nodeTimeoutMs: 300, commandTimeoutMs: 500 };
    const [locks, other] = [open(nodes, options), open(nodes, options)];
    await Promise.all([warmUp(locks), warmUp(other)]);
    const ledger = new ExclusionChecker();
    const key = newKey();
    const lease = ledger.granted(await locks.acquire(key, { ttlMs: 1_500 }));
    const aborted = abortOf(lease.signal);
    for (const node of nodes.slice(2)) {
      node.freeze();
    }
    const abortedAt = await aborted;
    expect(abortedAt).toBeGreaterThanOrEqual(lease.validUntil - longestLeadMs);
    expect(abortedAt).toBeLessThan(lease.validUntil + slackMs);
    expect(lossReasonOf(lease)).toBe("engine-unreachable");
    expect(lease.remainingMs()).toBe(0);
    for (const node of nodes.slice(2)) {
      node.thaw();
    }
    const next = ledger.granted(await other.acquire(key, { ttlMs, waitMs }));
    expect(await ledger.release(next)).toBe(true);
    expect(ledger.faults).toEqual([]);
  });
});
