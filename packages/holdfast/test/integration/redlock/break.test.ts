import { expect, test } from "vitest";
import { abortOf, rejection, waitUntil } from "@holdfast/test-kit";

import { ExclusionChecker } from "../../support/exclusion-checker.ts";
import {
  holders,
  newKey,
  onQuorum,
  open,
  queued,
  startNodes,
  startProxies,
  warmUp,
} from "../../support/quorum-servers.ts";
import { lossReasonOf } from "./lease-checks.ts";
import { grantCount, openThrough } from "./proxied-clients.ts";

const ttlMs = 60_000;
const waitMs = 25_000;
/** A busy machine makes no node time out. */
const patient = { nodeTimeoutMs: 1_000 };

onQuorum("an operator", () => {
  test("breaks a lease on a majority: its holder loses the lease at once, and the next waiter acquires the lock", async () => {
    const nodes = await startNodes();
    const drivers = [open(nodes, patient), open(nodes, patient), open(nodes, patient)] as const;
    const [holder, waiter, operator] = drivers;
    await Promise.all(drivers.map((locks) => warmUp(locks)));
    const ledger = new ExclusionChecker();
    const key = newKey();
    const lease = ledger.granted(await holder.acquire(key, { ttlMs }));
    // A majority suffices for the lease. A node that the waiter reaches first would lack the lease until its renewal.
    await waitUntil(async () => (await grantCount(nodes, key)) === nodes.length, "all nodes have the lease");
    const waiting = waiter.acquire(key, { ttlMs, waitMs });
    await queued(nodes, key, 1);
    nodes[0]?.freeze();
    await nodes[1]?.direct.hset(`holdfast:fence:{lock:${key}}`, "first", "7", "last", "7");
    const stale = { fencingToken: lease.fencingToken - 1n, reason: "test" };
    expect(await operator.admin.breakLock(key, stale)).toBe(false);
    expect(lease.signal.aborted).toBe(false);
    const aborted = abortOf(lease.signal);
    const broken = { fencingToken: lease.fencingToken, reason: "it hangs" };
    expect(await operator.admin.breakLock(key, broken)).toBe(true);
    await aborted; // long before a renewal is due
    expect(lossReasonOf(lease)).toBe("broken");
    expect(String((lease.signal.reason as Error).cause)).toContain("it hangs");
    const next = ledger.granted(await waiting);
    expect(await ledger.release(lease)).toBe(false);
    expect(await operator.admin.breakLock(key, broken)).toBe(false);
    expect(next.remainingMs()).toBeGreaterThan(0);
    nodes[0]?.thaw();
    expect(await ledger.release(next)).toBe(true);
    expect(ledger.faults).toEqual([]);
  });

  test("has broken a lease that its holder releases before the break arrives at the other nodes", async () => {
    const nodes = await startNodes(4); // two breaks leave less than a majority
    const proxies = await startProxies(nodes);
    const [holder, operator] = [open(nodes, patient), openThrough(proxies, false)];
    await Promise.all([warmUp(holder), warmUp(operator)]);
    const key = newKey();
    const lease = await holder.acquire(key, { ttlMs });
    const aborted = abortOf(lease.signal);
    const late = proxies.slice(2);
    for (const proxy of late) {
      proxy.holdBack(/recordedBreak/);
    }
    const isBroken = operator.admin.breakLock(key, { fencingToken: lease.fencingToken, reason: "test" });
    await aborted;
    await waitUntil(async () => (await grantCount(nodes, key)) === 0, "the holder has released the lease");
    await waitUntil(
      () => late.every(({ heldBack }) => heldBack > 0),
      "the break is under way to the other nodes",
    );
    for (const proxy of late) {
      proxy.holdBack(undefined);
      proxy.releaseHeld();
    }
    expect(await isBroken).toBe(true);
  });

  test("has one record of a break, also if its replies are lost and it was completed by a repeat", async () => {
    const nodes = await startNodes(3);
    const proxies = await startProxies(nodes);
    const [holder, operator] = [open(nodes, patient), openThrough(proxies, true)];
    await Promise.all([warmUp(holder), warmUp(operator)]);
    const key = newKey();
    const { fencingToken } = await holder.acquire(key, { ttlMs });
    const lost = proxies.map((proxy) => proxy.loseNextReply(/recordedBreak/));
    const broken = operator.admin.breakLock(key, { fencingToken, reason: "it hangs" }).catch(() => "unknown");
    await Promise.all(lost);
    await broken;
    await waitUntil(
      () => operator.admin.breakLock(key, { fencingToken, reason: "again" }).then((again) => !again),
      "the repeat breaks nothing",
    );
    const [record, ...others] = (await holder.admin.audit({ key })).records;
    expect([record?.reason, others]).toEqual(["it hangs", []]);
    // The repeat of a break that has reached one node has another id on the other nodes.
    const note = { key, by: record?.by, reason: "it hangs", fencingToken: fencingToken.toString() };
    const [first, second] = ["100", "200"].map(
      (id) => `${id} ${id} broken 7 ${JSON.stringify({ ...note, id })}`,
    ) as [string, string];
    const audit = "holdfast:audit:lock:";
    await Promise.all([nodes[0]?.direct.zadd(audit, 1, first), nodes[1]?.direct.zadd(audit, 1, second)]);
    const { records } = await holder.admin.audit({ id: "200" });
    expect(records).toMatchObject([{ id: "100", key, fencingToken, reason: "it hangs" }]);
    expect((await holder.admin.audit({ key })).records).toHaveLength(1);
    nodes[2]?.freeze();
    expect((await holder.admin.audit({ key })).records).toHaveLength(1);
    nodes[1]?.freeze();
    const { error } = await rejection(open(nodes, { commandTimeoutMs: 300 }).admin.audit({ key }));
    expect(error).toMatchObject({ code: "quorum-not-reached" });
  });

  test("cannot break a lease without a majority, and gets an error", async () => {
    const nodes = await startNodes();
    const options = { nodeTimeoutMs: 300, commandTimeoutMs: 600 };
    const [holder, operator] = [open(nodes, options), open(nodes, options)];
    await Promise.all([warmUp(holder), warmUp(operator)]);
    const key = newKey();
    const lease = await holder.acquire(key, { ttlMs });
    await waitUntil(
      async () => (await holders(nodes, key)).every((one) => one !== null),
      "all nodes have the grant",
    );
    for (const node of nodes.slice(2)) {
      node.freeze();
    }
    const { fencingToken } = lease;
    const { error } = await rejection(operator.admin.breakLock(key, { fencingToken, reason: "test" }));
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
      "the nodes answer again",
    );
    expect(await lease.release()).toBe(true);
  });
});
