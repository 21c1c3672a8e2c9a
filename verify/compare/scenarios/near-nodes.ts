import { startProxy, type RedisServer } from "@holdfast/test-kit";

import { connect } from "../clients.ts";
import type { Locks } from "../library.ts";
import { failed, notOffered, passed, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { startNodes, warmUp } from "../environment.ts";
import { withTimeout } from "../within.ts";

const ttlMs = 10_000;
const waitMs = 2_000;
const farDelayMs = 3; // each way
const rounds = 8;
const contenders = 3;

/** Three contenders send requests to three nodes at the same moment, each to its near node first. The holder releases at once. */
export const nearNodes: Scenario = {
  withinMs: 60_000,
  run: async (library): Promise<Outcome> => {
    const { onQuorum } = library;
    if (onQuorum === null) {
      return notOffered("no quorum");
    }
    const nodes = await startNodes(3);
    const contenderLocks = await Promise.all(
      Array.from({ length: contenders }, async (_, near) => onQuorum(await clientsNear(nodes, near))),
    );
    await Promise.all(contenderLocks.map(warmUp));
    const granted: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const turns = await Promise.all(contenderLocks.map((locks) => tryOnce(locks, `near-nodes:${round}`)));
      granted.push(turns.filter((isGranted) => isGranted).length);
    }
    const roundsWithoutGrant = granted.filter((count) => count === 0).length;
    const grantsText = `${granted.reduce((sum, count) => sum + count, 0)} of ${rounds * contenders} calls got the lock`;
    return roundsWithoutGrant === 0
      ? passed(grantsText)
      : failed(`in ${roundsWithoutGrant} of ${rounds} rounds no contender got the free lock; ${grantsText}`);
  },
};

/** Clients with a shorter delay to one node than to the others. */
function clientsNear(nodes: readonly RedisServer[], near: number): Promise<unknown[]> {
  return Promise.all(
    nodes.map(async ({ port }, index) => {
      const proxy = await startProxy(port);
      proxy.delay(index === near ? 0 : farDelayMs);
      return connect(proxy.port);
    }),
  );
}

async function tryOnce(locks: Locks, key: string): Promise<boolean> {
  const acquired = await withTimeout(waitMs + 2_000, locks.acquire(key, { ttlMs, waitMs }));
  if (acquired.state === "fulfilled") {
    await withTimeout(waitMs, acquired.value.release());
  }
  return acquired.state === "fulfilled";
}
