import type { Lease } from "holdfast";
import { expect, test } from "vitest";
import { rejection, waitUntil } from "@holdfast/test-kit";

import {
  newKey,
  onQuorum,
  open,
  startNodes,
  votesOf,
  type QuorumNode,
} from "../../support/quorum-servers.ts";

const ttlMs = 20_000;

onQuorum("a replica among the nodes", () => {
  test.each(["yes", "no"])("is quarantined, with replica-read-only %s", async (readOnly) => {
    const nodes = await startNodes(5);
    const [master, , , , replica] = nodes as [QuorumNode, QuorumNode, QuorumNode, QuorumNode, QuorumNode];
    await replica.direct.config("SET", "replica-read-only", readOnly);
    await master.direct.config("SET", "repl-diskless-sync-delay", "0");
    await replica.direct.replicaof("127.0.0.1", master.port);
    await waitUntil(
      async () => (await replica.direct.info("replication")).includes("link_status:up"),
      "the replica is linked to its primary",
    );
    const locks = open(nodes, { commandTimeoutMs: 500 });
    const key = newKey();
    const lease: Lease = await locks.acquire(key, { ttlMs });
    await waitUntil(
      async () => (await locks.admin.nodes())[4]?.quarantine !== null,
      "the replica is quarantined",
    );
    const [, , , , state] = await locks.admin.nodes();
    expect(state).toMatchObject({ role: "slave", reachable: true });
    expect(state?.quarantine?.reason).toMatch(/not a master/);
    expect(await lease.release()).toBe(true);
    // With two other nodes down, the replica is not a third vote.
    await Promise.all([nodes[1]?.kill(), nodes[2]?.kill()]);
    const { error } = await rejection(locks.acquire(newKey(), { ttlMs, waitMs: 1_000 }));
    expect(votesOf(error)[4]).toMatchObject({
      vote: "quarantined",
      reason: expect.stringContaining("not a master") as unknown,
    });
  });
});
