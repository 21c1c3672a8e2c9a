import { expect, test } from "vitest";
import { abortOf, rejection, waitUntil } from "@holdfast/test-kit";

import {
  awaitSubscribed,
  holders,
  ExclusionChecker,
  newKey,
  onQuorum,
  open,
  startNodes,
  votesOf,
  warmUp,
  type QuorumNode,
} from "../../support/quorum-servers.ts";
import { awaitHeldOnAll, lossReasonOf } from "./lease-checks.ts";

const ttlMs = 60_000;
const waitMs = 25_000;
/** Nodes are not given up where the machine is busy. */
const patient = { nodeTimeoutMs: 1_000 };
/** How late a timer may be where the machine is busy. */
const slackMs = 2_000;

/** A signal is aborted by at most so much before the validity ends: see timer-lateness.ts. */
const longestLeadMs = 51;

onQuorum("a lease of which a minority is lost", () => {
  test("is kept while every node in turn is restarted empty, and filled again", async () => {
    const nodes = await startNodes(3, { args: [] });
    const locks = open(nodes, { ...patient, restartGuard: "off" });
    await warmUp(locks);
    const ledger = new ExclusionChecker();
    const key = newKey();
    const lease = ledger.granted(await locks.acquire(key, { ttlMs }));
    const [token] = await holders(nodes, key);
    await awaitHeldOnAll(nodes, key, token);
    for (const node of nodes) {
      await node.restart();
      await awaitSubscribed(locks);
      await lease.extend(); // fills it
      await awaitHeldOnAll(nodes, key, token);
      await lease.extend(); // counts it
    }
    expect(lease.remainingMs()).toBeGreaterThan(ttlMs / 2);
    expect(await ledger.release(lease)).toBe(true);
    const next = ledger.granted(await locks.acquire(key, { ttlMs }));
    await ledger.release(next);
    expect(ledger.faults).toEqual([]);
  });

  test("is filled again only behind a majority that still has it", async () => {
    const nodes = await startNodes(3, { args: [] });
    const [empty, away] = nodes as [QuorumNode, QuorumNode, QuorumNode];
    const options = { nodeTimeoutMs: 300, restartGuard: "off" as const };
    const [locks, other] = [open(nodes, options), open(nodes, options)];
    await Promise.all([warmUp(locks), warmUp(other)]);
    const ledger = new ExclusionChecker();
    const key = newKey();
    const lease = ledger.granted(await locks.acquire(key, { ttlMs: 3_000, renew: false }));
    const [token] = await holders(nodes, key);
    await awaitHeldOnAll(nodes, key, token);
    const lost = abortOf(lease.signal);
    const { validUntil } = lease;
    away.freeze();
    await empty.loseData(key);
    for (let round = 0; round < 3; round += 1) {
      const { error } = await rejection(lease.extend());
      expect(error).toMatchObject({ code: "quorum-not-reached" });
      expect(await empty.holder(key)).toBeNull();
    }
    expect(lease.validUntil).toBe(validUntil);
    expect(await lost).toBeGreaterThanOrEqual(validUntil - longestLeadMs);
    away.thaw();
    const next = ledger.granted(await other.acquire(key, { ttlMs, waitMs }));
    await ledger.release(next);
    expect(ledger.faults).toEqual([]);
  });

  test("counts a node that was filled again from the next round on, and not while it may have forgotten", async () => {
    const nodes = await startNodes(3);
    const [restarted, away] = nodes as [QuorumNode, QuorumNode, QuorumNode];
    const locks = open(nodes, patient);
    await warmUp(locks);
    const ledger = new ExclusionChecker();
    const key = newKey();
    const lease = ledger.granted(await locks.acquire(key, { ttlMs: 6_000, renew: false }));
    const [token] = await holders(nodes, key);
    await awaitHeldOnAll(nodes, key, token);
    await restarted.restart(); // and votes after a minute at the earliest
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
      "two are heard again",
    );
    expect(lease.validUntil).toBeGreaterThan(validUntil);
    expect(await ledger.release(lease)).toBe(true);
  });

  test("and of which the rest goes after the lost ones were filled again, counts those", async () => {
    const nodes = await startNodes(5, { args: [] });
    const locks = open(nodes, { ...patient, restartGuard: "off" });
    await warmUp(locks);
    const key = newKey();
    const lease = await locks.acquire(key, { ttlMs });
    const [token] = await holders(nodes, key);
    await awaitHeldOnAll(nodes, key, token);
    const [a, b, c, d] = nodes as [QuorumNode, QuorumNode, QuorumNode, QuorumNode, QuorumNode];
    for (const gone of [
      [a, b],
      [c, d],
    ]) {
      await Promise.all(gone.map((node) => node.loseData(key)));
      await lease.extend();
      await awaitHeldOnAll(nodes, key, token);
      await lease.extend();
    }
    await Promise.all([c, d].map((node) => node.kill()));
    await lease.extend(); // by one that always had it, and two that were filled
    expect(lease.remainingMs()).toBeGreaterThan(ttlMs / 2);
    expect(await lease.release()).toBe(true);
  });
});

onQuorum("a lease that a majority has lost", () => {
  test.each([
    ["forgotten", "expired"],
    ["taken by another", "stolen"],
  ])("is told lost at the next renewal: %s", async (how, reason) => {
    const nodes = await startNodes();
    const locks = open(nodes, patient);
    await warmUp(locks);
    const key = newKey();
    const lease = await locks.acquire(key, { ttlMs: 3_000 });
    await waitUntil(
      async () => (await holders(nodes, key)).every((holder) => holder !== null),
      "all have it",
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
    expect((await aborted) - changedAt).toBeLessThan(1_000 + slackMs); // its validity would end after 3 s
    expect(lossReasonOf(lease)).toBe(reason);
    expect(lease.remainingMs()).toBe(0);
    expect(await lease.release()).toBe(false);
  });

  test("by restarts, one within another's quarantine, ends at its validity and is never two", async () => {
    const nodes = await startNodes(3);
    const options = { ...patient, maxTtlMs: 800 };
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

onQuorum("a lease whose majority does not answer", () => {
  test("goes on if it answers before the validity is over", async () => {
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

  test("is lost as its validity ends, and not long before", async () => {
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
