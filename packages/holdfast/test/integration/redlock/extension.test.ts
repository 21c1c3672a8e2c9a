import { setTimeout as pause } from "node:timers/promises";

import type { Lease, LeaseLostError, Locks, LockState } from "holdfast";
import { expect, test } from "vitest";
import { abortOf, rejection, waitUntil } from "@holdfast/test-kit";

import {
  durable,
  awaitSubscribed,
  holders,
  ExclusionChecker,
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
import { QuorumWorker } from "../../support/quorum-workers.ts";

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
    await onAll(nodes, key, token);
    for (const node of nodes) {
      await node.restart();
      await awaitSubscribed(locks);
      await lease.extend(); // fills it
      await onAll(nodes, key, token);
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
    await onAll(nodes, key, token);
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
    await onAll(nodes, key, token);
    await restarted.restart(); // and votes after a minute at the earliest
    await awaitSubscribed(locks);
    await lease.extend();
    await onAll(nodes, key, token);
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
    await onAll(nodes, key, token);
    const [a, b, c, d] = nodes as [QuorumNode, QuorumNode, QuorumNode, QuorumNode, QuorumNode];
    for (const gone of [
      [a, b],
      [c, d],
    ]) {
      await Promise.all(gone.map((node) => node.loseData(key)));
      await lease.extend();
      await onAll(nodes, key, token);
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
    expect(reasonOf(lease)).toBe(reason);
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
    expect(reasonOf(lease)).toBe("engine-unreachable");
    expect(lease.remainingMs()).toBe(0);
    for (const node of nodes.slice(2)) {
      node.thaw();
    }
    const next = ledger.granted(await other.acquire(key, { ttlMs, waitMs }));
    expect(await ledger.release(next)).toBe(true);
    expect(ledger.faults).toEqual([]);
  });
});

onQuorum("a lease that is given back", () => {
  test("is given back by close() as well on a node that answers again within its time", async () => {
    const nodes = await startNodes(3);
    const [late] = nodes as [QuorumNode];
    const locks = open(nodes, { nodeTimeoutMs: 100, commandTimeoutMs: 5_000 }, { closeTimeoutMs: 10_000 });
    await warmUp(locks);
    const key = newKey();
    const lease = await locks.acquire(key, { ttlMs });
    const [token] = await holders(nodes, key);
    await onAll(nodes, key, token);
    late.freeze();
    await locks.inspect(key); // it is known not to answer
    expect(await lease.release()).toBe(true);
    const closing = locks.close();
    await pause(200);
    late.thaw();
    await closing;
    await expectNoResidue(nodes, 3_000);
  });
});

onQuorum("an operator", () => {
  test("breaks a lease on a majority: its holder is told at once, and who waits has it next", async () => {
    const nodes = await startNodes();
    const drivers = [open(nodes, patient), open(nodes, patient), open(nodes, patient)] as const;
    const [holder, waiter, operator] = drivers;
    await Promise.all(drivers.map((locks) => warmUp(locks)));
    const ledger = new ExclusionChecker();
    const key = newKey();
    const lease = ledger.granted(await holder.acquire(key, { ttlMs }));
    const waiting = waiter.acquire(key, { ttlMs, waitMs });
    await queued(nodes, key, 1);
    nodes[0]?.freeze();
    await nodes[1]?.direct.hset(`holdfast:fence:{lock:${key}}`, "first", "7", "last", "7");
    const stale = { fencingToken: lease.fencingToken - 1n, reason: "test" };
    expect(await operator.breakLock(key, stale)).toBe(false);
    expect(lease.signal.aborted).toBe(false);
    const aborted = abortOf(lease.signal);
    const broken = { fencingToken: lease.fencingToken, reason: "it hangs" };
    expect(await operator.breakLock(key, broken)).toBe(true);
    await aborted; // long before a renewal is due
    expect(reasonOf(lease)).toBe("broken");
    expect(String((lease.signal.reason as Error).cause)).toContain("it hangs");
    const next = ledger.granted(await waiting);
    expect(await ledger.release(lease)).toBe(false);
    expect(await operator.breakLock(key, broken)).toBe(false);
    expect(next.remainingMs()).toBeGreaterThan(0);
    nodes[0]?.thaw();
    expect(await ledger.release(next)).toBe(true);
    expect(ledger.faults).toEqual([]);
  });

  test("cannot break it without a majority, and says so", async () => {
    const nodes = await startNodes();
    const options = { nodeTimeoutMs: 300, commandTimeoutMs: 600 };
    const [holder, operator] = [open(nodes, options), open(nodes, options)];
    await Promise.all([warmUp(holder), warmUp(operator)]);
    const key = newKey();
    const lease = await holder.acquire(key, { ttlMs });
    await waitUntil(async () => (await holders(nodes, key)).every((one) => one !== null), "all have it");
    for (const node of nodes.slice(2)) {
      node.freeze();
    }
    const { fencingToken } = lease;
    const { error } = await rejection(operator.breakLock(key, { fencingToken, reason: "test" }));
    expect(error).toMatchObject({ code: "quorum-not-reached", retryable: true });
    expect(lease.signal.aborted).toBe(false);
    for (const node of nodes.slice(2)) {
      node.thaw();
    }
    await waitUntil(
      () =>
        lease.extend().then(
          () => true,
          () => false,
        ),
      "they are heard again",
    );
    expect(await lease.release()).toBe(true);
  });
});

onQuorum("a lease that goes to another process", () => {
  test("is held there, extended and released, though a minority has lost it", async () => {
    const nodes = await startNodes();
    const worker = await QuorumWorker.start({ name: "worker", drivers: [nodes], redlock: patient });
    const locks = open(nodes, patient);
    await Promise.all([warmUp(locks), worker.request("warmUp", { count: nodes.length }, "warm")]);
    const key = newKey();
    const options = { ttlMs: 20_000 };
    const { fencingToken } = await worker.request("acquire", { key, options }, "granted");
    await waitUntil(async () => (await holders(nodes, key)).every((one) => one !== null), "all have it");
    const [token] = await holders(nodes, key);
    await nodes[0]?.loseData(key);
    await nodes[1]?.kill();

    const { serialized } = await worker.request("transfer", { key }, "transferred");
    const lease = await locks.adopt(serialized);
    expect(lease.fencingToken).toBe(BigInt(fencingToken));
    expect(await worker.request("release", { key }, "released")).toMatchObject({ released: false });
    await worker.kill(); // nothing of it depends on where it came from
    await lease.extend();
    await onAll(
      nodes.filter(({ isUp }) => isUp),
      key,
      token,
    );
    expect(await locks.checkFence(key, lease.fencingToken)).toBe("current");
    expect(await locks.tryAcquire(key, { ttlMs })).toBeNull();

    const back = await QuorumWorker.start({ name: "back", drivers: [nodes], redlock: patient });
    await back.request("adopt", { serialized: lease.transfer() }, "granted");
    expect(await lease.release()).toBe(false);
    expect(await back.request("judge", { key }, "judged")).toMatchObject({ isLost: false });
    expect(await back.request("release", { key }, "released")).toMatchObject({ released: true });
    const next = await locks.acquire(key, { ttlMs });
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    expect(await next.release()).toBe(true);
  });

  test("is refused there where a majority has lost it", async () => {
    const nodes = await startNodes(3);
    const [from, to] = [open(nodes, patient), open(nodes, patient)];
    await Promise.all([warmUp(from), warmUp(to)]);
    const key = newKey();
    const lease = await from.acquire(key, { ttlMs });
    await waitUntil(async () => (await holders(nodes, key)).every((one) => one !== null), "all have it");
    const serialized = lease.transfer();
    await Promise.all(nodes.slice(1).map((node) => node.loseData(key)));
    const { error } = await rejection(to.adopt(serialized));
    expect(error).toMatchObject({ code: "lease-lost" });
    await nodes[0]?.loseData(key);
  });
});

onQuorum("what is told of locks where nodes disagree", () => {
  test("is what the majority says, and what each node says", async () => {
    const nodes = await startNodes();
    const locks = open(nodes, { nodeTimeoutMs: 500, commandTimeoutMs: 1_000 }, { owner: "holder" });
    const other = open(nodes, { nodeTimeoutMs: 500, commandTimeoutMs: 1_000 }, { owner: "waiter" });
    await Promise.all([warmUp(locks), warmUp(other)]);
    const key = newKey();
    const before = await locks.acquire(key, { ttlMs });
    const next = locks.acquire(key, { ttlMs, reason: "a reason" });
    await before.release();
    const lease = await next;
    await waitUntil(async () => (await holders(nodes, key)).every((one) => one !== null), "all have it");
    const waiting = other.acquire(key, { ttlMs, waitMs });
    await queued(nodes, key, 1);
    const [, stolen, dumb] = nodes as [QuorumNode, QuorumNode, QuorumNode, QuorumNode, QuorumNode];
    await stolen.direct.set(`lock:${key}`, "another's", "PX", 20_000);
    await stolen.direct.hset(`holdfast:fence:{lock:${key}}`, "first", "9", "last", "9");
    dumb.freeze();
    for (const asked of [locks, other]) {
      const state = await asked.inspect(key);
      expect(state.fencingToken).toBe(lease.fencingToken);
      expect(state.holders).toMatchObject([
        { owner: "holder", reason: "a reason", fencingToken: lease.fencingToken },
      ]);
      expect(state.waiterCount).toBe(1);
      expect(state.waiters).toEqual([{ owner: "waiter", position: 0 }]);
      expect(state.remainingMs).toBeGreaterThan(0);
      expect(state.remainingMs).toBeLessThanOrEqual(ttlMs);
      expect(state.nodes.map(({ held }) => held)).toEqual([true, true, null, true, true]);
      expect(state.nodes.map(({ owner }) => owner)).toEqual([
        "holder",
        "unknown",
        undefined,
        "holder",
        "holder",
      ]);
      expect(state.nodes[2]?.error).toMatch(/\w/);
      expect(await asked.checkFence(key, lease.fencingToken)).toBe(asked === locks ? "current" : "unknown");
      expect(await asked.checkFence(key, before.fencingToken)).toBe("stale");
      expect(await asked.checkFence(key, lease.fencingToken + 1_000_000n)).toBe("stale");
    }
    dumb.thaw();
    await stolen.loseData(key);
    expect(await lease.release()).toBe(true);
    expect(await (await waiting).release()).toBe(true);
    await expectNoResidue(nodes); // the node that is late is told behind the result
  });

  test("is that a lock of a minority is nobody's", async () => {
    const nodes = await startNodes();
    const locks = open(nodes, patient);
    await warmUp(locks);
    const key = newKey();
    const lease = await locks.acquire(key, { ttlMs, renew: false });
    await waitUntil(async () => (await holders(nodes, key)).every((one) => one !== null), "all have it");
    await Promise.all(nodes.slice(2).map((node) => node.loseData(key)));
    const state = await locks.inspect(key);
    expect(state.holders).toEqual([]);
    expect(state.remainingMs).toBeNull();
    expect(state.nodes.map(({ held }) => held)).toEqual([true, true, false, false, false]);
    expect((await everyPage(locks, `${key}`, 100)).map((one) => one.key)).toEqual([]);
    await lease.release();
  });

  test("in pages is each lock of a majority, once, whichever nodes miss it", async () => {
    const nodes = await startNodes();
    const locks = open(nodes, { nodeTimeoutMs: 500, commandTimeoutMs: 1_000 });
    await warmUp(locks);
    const prefix = `${newKey()}:`;
    const leases = await Promise.all(
      Array.from({ length: 40 }, (_, index) => locks.acquire(`${prefix}${index}`, { ttlMs, renew: false })),
    );
    await quietOn(nodes, prefix, leases.length);
    const minority: string[] = [];
    for (const [index, { key }] of leases.entries()) {
      // Each third is missing on two nodes, each fourth of the others on three.
      const missing = index % 3 === 0 ? 2 : index % 4 === 0 ? 3 : 0;
      for (let turn = 0; turn < missing; turn += 1) {
        await nodes[(index + turn) % nodes.length]?.loseData(key);
      }
      if (missing === 3) {
        minority.push(key);
      }
    }
    expect(minority.length).toBeGreaterThan(3);
    const expected = leases.map(({ key }) => key).filter((key) => !minority.includes(key));
    for (const limit of [7, 1_000]) {
      const states = await everyPage(locks, prefix, limit);
      expect(states.map(({ key }) => key).sort()).toEqual([...expected].sort());
      for (const { key, fencingToken } of states) {
        expect(fencingToken).toBe(leases.find((lease) => lease.key === key)?.fencingToken);
      }
    }
    await nodes[0]?.kill();
    // With a node less some of them are a minority, by what the rest says.
    const states = await everyPage(locks, prefix, 7);
    const rest = await Promise.all(
      expected.map(async (key) => {
        const tokens = await holders(nodes.slice(1), key);
        return tokens.filter((token) => token !== null).length >= 3 ? key : undefined;
      }),
    );
    expect(states.map(({ key }) => key).sort()).toEqual(rest.filter((key) => key !== undefined).sort());
    await nodes[0]?.restart(durable);
    await awaitSubscribed(locks);
    await Promise.all(leases.map((lease) => lease.release()));
  });
});

/** All pages, of which none may be much longer than asked. */
async function everyPage(locks: Locks, prefix: string, limit: number): Promise<LockState[]> {
  const states: LockState[] = [];
  let cursor: string | null | undefined;
  for (let page = 0; cursor !== null; page += 1) {
    expect(page).toBeLessThan(500);
    const answer = await locks.list({ prefix, limit, ...(cursor === undefined ? {} : { cursor }) });
    states.push(...answer.locks);
    ({ cursor } = answer);
  }
  return states;
}

/** Each of the nodes has all of so many locks. */
async function quietOn(nodes: readonly QuorumNode[], prefix: string, count: number): Promise<void> {
  for (const { direct } of nodes) {
    await waitUntil(async () => (await direct.keys(`lock:${prefix}*`)).length === count, "it has all");
  }
}

/** It is on each of them, by the same token. */
async function onAll(
  nodes: readonly QuorumNode[],
  key: string,
  token: string | null | undefined,
): Promise<void> {
  expect(token).toBeTypeOf("string");
  await waitUntil(async () => (await holders(nodes, key)).every((holder) => holder === token), "all have it");
}

function reasonOf({ signal }: Lease): string {
  return (signal.reason as LeaseLostError).reason;
}
