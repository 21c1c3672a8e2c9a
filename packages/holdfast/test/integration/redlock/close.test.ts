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

onQuorum("a lease that is released while a node is frozen", () => {
  test("is released by close() on a node that answers again before the close timeout", async () => {
    const nodes = await startNodes(3);
    const [late] = nodes as [QuorumNode];
    const locks = open(nodes, { nodeTimeoutMs: 100, commandTimeoutMs: 5_000 }, { closeTimeoutMs: 10_000 });
    await warmUp(locks);
    const key = newKey();
    const lease = await locks.acquire(key, { ttlMs });
    const [token] = await holders(nodes, key);
    await awaitHeldOnAll(nodes, key, token);
    late.freeze();
    await locks.inspect(key); // the node is known to be unresponsive
    expect(await lease.release()).toBe(true);
    const closing = locks.close();
    await pause(200);
    late.thaw();
    await closing;
    await expectNoResidue(nodes, 3_000);
  });
});
