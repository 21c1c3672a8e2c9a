import { expect, test } from "vitest";
import type { Lease } from "holdfast";

import { FakeQuorum, refusedError, type FakeProcess } from "../../../support/fake-quorum.ts";

const maxTtlMs = 2_000;
/** How long a restarted node does not vote. */
const memoryMs = maxTtlMs + 3_000;
const far = [1, 1, 10] as const;

/**
 * A process whose last vote came after the restart of its node. The process returns that vote, and the node
 * does not receive the return.
 */
async function returningVote(lab: FakeQuorum): Promise<{ process: FakeProcess; acquired: Promise<Lease> }> {
  const process = await lab.warmUp({ redlock: { maxTtlMs }, distancesMs: far });
  const { locks, faults } = process;
  lab.nodes[2]?.restart({ keepData: false });
  await lab.settleWithin(25, locks.acquire("other", { ttlMs: maxTtlMs }));
  const acquired = locks.acquire("k", { ttlMs: maxTtlMs }); // sent during the examination of the restarted node
  await lab.clock.advance(16);
  faults[2]?.refuse(refusedError());
  return { process, acquired };
}

test("a pending return of a vote is dropped once the node votes for the request again", async () => {
  const lab = new FakeQuorum(3);
  lab.nodes[0]?.set("lock:k", "another's", memoryMs + 4_000);
  lab.nodes[1]?.set("lock:k", "another's", memoryMs + 4_000);
  const { process, acquired } = await returningVote(lab);
  await lab.clock.advance(memoryMs - 100);
  process.faults[2]?.refuse(null);
  await lab.clock.advance(200);
  for (let ms = 0; ms < 3_000; ms += 1) {
    expect(lab.holders("k")[2]).not.toBeNull(); // a return was tried at least every two seconds
    await lab.clock.advance(1);
  }
  const lease = await lab.settleWithin(2_000, acquired);
  expect(lease.remainingMs()).toBeGreaterThan(0);
});

test("a pending return of a vote does not end the grant of a refilled node", async () => {
  const lab = new FakeQuorum(3);
  lab.nodes[0]?.set("lock:k", "another's", 500);
  const { process, acquired } = await returningVote(lab);
  const lease = await lab.settleWithin(1_500, acquired); // by the two other nodes
  await lab.clock.advance(memoryMs - 1_600);
  process.faults[2]?.refuse(null);
  for (let ms = 0; ms < 2_000 && lab.holders("k")[2] === null; ms += 10) {
    await lab.clock.advance(10);
  }
  expect(lab.holders("k")[2]).not.toBeNull();
  await lab.clock.advance(1_000); // the node counts from the next renewal on
  lab.nodes[0]?.set("lock:k", "another's", 60_000);
  await lab.clock.advance(3_000);
  expect(lease.signal.aborted).toBe(false);
});

test("a node that gets two releases, because its reply is late, counts once", async () => {
  const lab = new FakeQuorum(3);
  const { locks, faults } = await lab.warmUp();
  const lease = await lab.settleWithin(20, locks.acquire("k", { ttlMs: 60_000 }));
  faults[0]?.delay({ replyMs: 150 });
  faults[1]?.freeze();
  faults[2]?.freeze();
  await expect(lab.settleWithin(5_000, lease.release())).rejects.toMatchObject({
    code: "quorum-not-reached",
  });
});
