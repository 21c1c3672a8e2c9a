import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";

import {
  holders,
  newKey,
  expectNoResidue,
  onQuorum,
  open,
  startNodes,
  warmUp,
  type QuorumNode,
} from "../../support/quorum-servers.ts";
import { awaitHeldOnAll } from "./lease-checks.ts";

const ttlMs = 60_000;

onQuorum("a lease that is given back", () => {
  test("is given back by close() as well on a node that answers again within its time", async () => {
    const nodes = await startNodes(3);
    const [late] = nodes as [QuorumNode];
    const locks = open(nodes, { nodeTimeoutMs: 100, commandTimeoutMs: 5_000 }, { closeTimeoutMs: 10_000 });
    await warmUp(locks);
    const key = newKey();
    const lease = await locks.acquire(key, { ttlMs });
    const [token] = await holders(nodes, key);
    await awaitHeldOnAll(nodes, key, token);
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
