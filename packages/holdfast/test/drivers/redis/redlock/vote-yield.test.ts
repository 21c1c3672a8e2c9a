import type { Locks } from "holdfast";
import { beforeEach, expect, test } from "vitest";

import { QuorumFixture, type QuorumClient } from "../../../support/quorum-fixture.ts";

// Two share the nodes, and the one that came first asks the other for its vote.

const ttlMs = 60_000;
let fixture: QuorumFixture;
let rival: QuorumClient;
let bidder: QuorumClient;

/** The rival comes first and has n1, the bidder comes 1 ms later and has n0; nobody reaches n2. */
beforeEach(async () => {
  fixture = new QuorumFixture();
  rival = await fixture.client();
  bidder = await fixture.client();
  rival.faults[0]?.delay({ requestMs: 10 });
  for (const { faults } of [rival, bidder]) {
    faults[2]?.freeze();
  }
});

/** @returns whether the rival has been granted it */
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

test("an inquiry that comes before the vote that it asks back is remembered", async () => {
  bidder.faults[0]?.delay({ replyMs: 20, messageMs: 1 });
  const isGranted = await begin();
  await fixture.advance(80);
  expect(isGranted()).toBe(true);
});

test("an inquiry that got lost is repeated while the votes are split", async () => {
  bidder.faults[0]?.dropMessages((text) => text.startsWith("inquiry"));
  const isGranted = await begin();
  await fixture.advance(50);
  bidder.faults[0]?.dropMessages(null);
  await fixture.advance(2_000);
  expect(isGranted()).toBe(true);
});

test("a vote that could not be given back is given back later", async () => {
  const isGranted = await begin();
  await fixture.advance(5);
  bidder.faults[0]?.refuse(new Error("connect ECONNREFUSED"), 1);
  await fixture.advance(3_000);
  expect(isGranted()).toBe(true);
});

test("a vote whose giving back came too late is given back again", async () => {
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

test("a vote that was given back does not count, though an answer from before that comes later", async () => {
  rival.faults[0]?.delay({ requestMs: 400 });
  bidder.faults[2]?.thaw();
  bidder.faults[2]?.delay({ requestMs: 600 }); // its vote comes with the same number as that of n0
  const hasRival = granted(rival.locks);
  await fixture.advance(1);
  const hasBidder = granted(bidder.locks);
  await fixture.advance(100);
  rival.faults[0]?.delay({});
  bidder.faults[0]?.delay({ replyMs: 700, messageMs: 1 }); // n0 is asked again, and says once more that it is the bidder's
  await fixture.advance(3_000);
  expect([hasRival(), hasBidder()]).toEqual([true, false]);
});
