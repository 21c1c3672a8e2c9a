import type { Lease } from "holdfast";
import { beforeEach, expect, test } from "vitest";

import { QuorumFixture, type QuorumClient } from "../../../support/quorum-fixture.ts";

// An extension counts only proofs that no other client can have acquired the lock.

const ttlMs = 10_000;
const key = "lock:k";
const fence = "holdfast:fence:{lock:k}";
const notReached = { code: "quorum-not-reached" };

let fixture: QuorumFixture;
let side: QuorumClient;
let lease: Lease;

/** On the first two of three nodes. */
beforeEach(async () => {
  fixture = new QuorumFixture();
  side = await fixture.client();
  side.faults[2]?.refuse(new Error("connect ECONNREFUSED"));
  lease = await fixture.settleWithin(10, side.locks.acquire("k", { ttlMs, renew: false }));
  side.faults[2]?.refuse(null);
});

test("an extension needs a majority of all nodes, not only of those that reply", async () => {
  for (const each of side.faults.slice(1)) {
    each.freeze();
  }
  await expect(fixture.settleWithin(1_000, lease.extend())).rejects.toMatchObject(notReached);
});

test("a node whose grant has another number has lost the grant in between", async () => {
  const first = Number(fixture.servers[0]?.hget(fence, "first"));
  fixture.servers[0]?.call("HSET", fence, "first", String(first + 100), "last", String(first + 100));
  await expect(fixture.settleWithin(1_000, lease.extend())).rejects.toMatchObject({ code: "lease-lost" });
});

test("a node that got the grant later does not count before a majority has confirmed it", async () => {
  const [one, , late] = fixture.servers;
  late?.set(key, one?.get(key) ?? "", ttlMs);
  one?.del(key);
  one?.set(key, "another's", ttlMs);
  await expect(fixture.settleWithin(1_000, lease.extend())).rejects.toMatchObject(notReached);
});

test("a node that restarted with its data does not count", async () => {
  fixture.servers[0]?.restart({ keepData: true });
  side.faults[2]?.freeze();
  await expect(fixture.settleWithin(1_000, lease.extend())).rejects.toMatchObject(notReached);
});

test("nodes without the grant get it again once a majority is confirmed", async () => {
  await fixture.settleWithin(1_000, lease.extend());
  expect(fixture.servers[2]?.get(key)).toBe(fixture.servers[0]?.get(key));
});

test("a reply after the end of the validity that it confirms refills no node", async () => {
  for (const each of side.faults) {
    each.delay({ replyMs: 5 });
  }
  const extended = lease.extend();
  await fixture.advance(1);
  fixture.clock.block(ttlMs);
  await expect(fixture.settleWithin(100, extended)).rejects.toMatchObject({
    code: "lease-lost",
    reason: "expired",
  });
  expect(fixture.servers.map((server) => server.get(key))).toEqual([null, null, null]);
});

test("without a confirmed majority no node is refilled", async () => {
  fixture.loseData(0);
  side.faults[1]?.freeze();
  await expect(fixture.settleWithin(1_000, lease.extend())).rejects.toMatchObject({ code: "lease-lost" });
  expect([fixture.servers[0]?.get(key), fixture.servers[2]?.get(key)]).toEqual([null, null]);
});

test("a node without the grant is not refilled while the majority is unknown", async () => {
  fixture.loseData(0);
  side.faults[2]?.freeze();
  await expect(fixture.settleWithin(1_000, lease.extend())).rejects.toMatchObject(notReached);
  expect(fixture.servers[0]?.get(key)).toBeNull();
});

test("a loss counts even if its request was sent at the very moment of the grant", async () => {
  const extended = side.locks.acquire("m", { ttlMs, renew: false }).then((granted) => {
    for (const index of [0, 1, 2]) {
      fixture.loseData(index, "m");
    }
    return granted.extend();
  });
  await expect(fixture.settleWithin(1_000, extended)).rejects.toMatchObject({ code: "lease-lost" });
});
