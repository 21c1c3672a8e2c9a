import type { Locks } from "holdfast";
import { beforeEach, expect, test } from "vitest";

import { QuorumFixture, type QuorumClient } from "../../../support/quorum-fixture.ts";

// Two requests share the nodes, and the earlier one requests the vote of the later one.

const ttlMs = 60_000;
let fixture: QuorumFixture;
let rival: QuorumClient;
let bidder: QuorumClient;

/** The rival is earlier and has n1. The bidder comes 1 ms later and has n0. No request reaches n2. */
beforeEach(async () => {
  fixture = new QuorumFixture();
  rival = await fixture.client();
  bidder = await fixture.client();
  rival.faults[0]?.delay({ requestMs: 10 });
  for (const { faults } of [rival, bidder]) {
    faults[2]?.freeze();
  }
});

/** @returns whether the rival has acquired the lock */
async function begin(): Promise<() => boolean> {
  const isGranted = granted(rival.locks);
  await fixture.advance(1);
  granted(bidder.locks);
  return isGranted;
}

function granted(locks: Locks): () => boolean {
  let isGranted = false;
  void locks.acquire("k", { ttlMs }).then(
    () => (isGranted = true),
    () => undefined,
  );
  return () => isGranted;
}

test("an inquiry that arrives before its vote is remembered", async () => {
  bidder.faults[0]?.delay({ replyMs: 20, messageMs: 1 });
  const isGranted = await begin();
  await fixture.advance(80);
  expect(isGranted()).toBe(true);
});

test("a lost inquiry is repeated while the votes are split", async () => {
  bidder.faults[0]?.dropMessages((text) => text.startsWith("inquiry"));
  const isGranted = await begin();
  await fixture.advance(50);
  bidder.faults[0]?.dropMessages(null);
  await fixture.advance(2_000);
  expect(isGranted()).toBe(true);
});

test("a vote whose yield failed is yielded later", async () => {
  const isGranted = await begin();
  await fixture.advance(5);
  bidder.faults[0]?.refuse(new Error("connect ECONNREFUSED"), 1);
  await fixture.advance(3_000);
  expect(isGranted()).toBe(true);
});

test("a vote whose yield came too late is yielded again", async () => {
  bidder = await fixture.client({ commandTimeoutMs: 100, nodeTimeoutMs: 10_000 });
  bidder.faults[2]?.freeze();
  const isGranted = await begin();
  await fixture.advance(1);
  bidder.faults[0]?.delay({ requestMs: 4_000 });
  await fixture.advance(4_100);
  expect(isGranted()).toBe(false);
  bidder.faults[0]?.delay({});
  await fixture.advance(10_000);
  expect(isGranted()).toBe(true);
});

test("a yielded vote does not count, although an earlier reply with it comes later", async () => {
  rival.faults[0]?.delay({ requestMs: 400 });
  bidder.faults[2]?.thaw();
  bidder.faults[2]?.delay({ requestMs: 600 }); // its vote has the same number as the vote of n0
  const hasRival = granted(rival.locks);
  await fixture.advance(1);
  const hasBidder = granted(bidder.locks);
  await fixture.advance(100);
  rival.faults[0]?.delay({});
  bidder.faults[0]?.delay({ replyMs: 700, messageMs: 1 }); // n0 gets another request, and its reply still names the bidder
  await fixture.advance(3_000);
  expect([hasRival(), hasBidder()]).toEqual([true, false]);
});
