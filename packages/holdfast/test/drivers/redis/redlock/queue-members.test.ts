import { expect, test } from "vitest";

import { QuorumFixture } from "../../../support/quorum-fixture.ts";

// These rules decide which nodes count for a lease or for a pending request. Without the guard, nothing else
// excludes a restarted node.

const ttlMs = 10_000;
const unguarded = { restartGuard: "off" } as const;

test("a node that reports a loss before the others reply does not end a lease", async () => {
  const fixture = new QuorumFixture();
  const { locks } = await fixture.client();
  const lease = await fixture.settleWithin(10, locks.acquire("k", { ttlMs, renew: false }));
  fixture.servers[0]?.del("lock:k");
  fixture.servers[0]?.del("holdfast:fence:{lock:k}"); // the node has forgotten its vote
  await fixture.settleWithin(100, lease.extend());
  expect(fixture.servers[0]?.get("lock:k")).toBe(fixture.servers[1]?.get("lock:k"));
});

test("a node that restarted with the data of its disk does not count for a lease", async () => {
  const fixture = new QuorumFixture();
  const { locks, faults } = await fixture.client(unguarded);
  faults[2]?.refuse(new Error("connect ECONNREFUSED"));
  const lease = await fixture.settleWithin(10, locks.acquire("k", { ttlMs, renew: false }));
  fixture.servers[0]?.restart({ keepData: true });
  await fixture.advance(100);
  expect(fixture.servers[0]?.get("lock:k")).not.toBeNull();
  await expect(fixture.settleWithin(1_000, lease.extend())).rejects.toMatchObject({
    code: "quorum-not-reached",
  });
  faults[2]?.refuse(null);
  await expect(fixture.settleWithin(1_000, locks.tryAcquire("other"))).resolves.not.toBeNull();
});

test("a vote from before its node's restart does not count for a pending request", async () => {
  const fixture = new QuorumFixture();
  const { locks, faults } = await fixture.client(unguarded);
  faults[1]?.delay({ requestMs: 20 });
  faults[2]?.freeze();
  const holding = locks
    .acquire("k", { ttlMs })
    .then(() => fixture.servers.filter((server) => server.get("lock:k") !== null));
  await fixture.advance(5);
  expect(fixture.servers[0]?.get("lock:k")).not.toBeNull();
  faults[0]?.delay({ requestMs: 10 }); // the restart is known before n1 votes, and the node's new vote comes after that
  fixture.servers[0]?.restart({ keepData: false });
  expect(await fixture.settleWithin(1_000, holding)).toHaveLength(2);
});
