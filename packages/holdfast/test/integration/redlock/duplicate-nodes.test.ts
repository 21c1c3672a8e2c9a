import { isLockError } from "holdfast";
import { expect, test } from "vitest";
import { type Proxy, rejection, waitUntil } from "@holdfast/test-kit";

import {
  newKey,
  onQuorum,
  open,
  startNodes,
  startProxies,
  type QuorumNode,
} from "../../support/quorum-servers.ts";

const ttlMs = 20_000;

onQuorum("two clients of one server", () => {
  test("are refused", async () => {
    const nodes = await startNodes(4);
    const twice = [...nodes, nodes[3] as QuorumNode];
    const locks = open(twice, {});
    const calls = [() => locks.acquire(newKey(), { ttlMs }), () => locks.tryAcquire(newKey(), { ttlMs })];
    await waitUntil(
      async () => (await locks.admin.nodes()).filter(({ quarantine }) => quarantine).length === 2,
      "the duplicate is known",
    );
    for (const call of calls) {
      const { error } = await rejection(call());
      expect(isLockError(error, "unsupported")).toBe(true);
      expect(error).toMatchObject({ retryable: false });
      expect(String(error)).toContain("the same server");
    }
  });

  test("through different addresses are refused as well, and never vote twice", async () => {
    const [node] = (await startNodes(1)) as [QuorumNode];
    const proxies: Proxy[] = [];
    for (let proxy = 0; proxy < 3; proxy += 1) {
      proxies.push(...(await startProxies([node])));
    }
    const locks = open(proxies);
    const { error } = await rejection(locks.acquire(newKey(), { ttlMs, waitMs: 2_000 }));
    expect(isLockError(error, "unsupported")).toBe(true);
  });
});
