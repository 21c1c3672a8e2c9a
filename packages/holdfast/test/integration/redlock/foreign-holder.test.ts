import { expect, test } from "vitest";
import { timeFactor, waitUntil } from "@holdfast/test-kit";

import { newKey, onQuorum, open, startNodes, warmUp } from "../../support/quorum-servers.ts";

/** Without faster polls a waiter would notice the end of another program's lock after 5 s. */
const soonMs = 2_500 * timeFactor;

onQuorum("while another program holds the lock on all nodes", () => {
  test("the first waiter is granted soon after the release", async () => {
    const nodes = await startNodes(3);
    const locks = open(nodes);
    await warmUp(locks);
    const key = newKey();
    await Promise.all(nodes.map((node) => node.direct.set(`lock:${key}`, "another program", "PX", 60_000)));
    const wait = locks.acquire(key);
    await waitUntil(async () => {
      const lengths = await Promise.all(
        nodes.map((node) => node.direct.zcard(`holdfast:queue:{lock:${key}}`)),
      );
      return lengths.every((length) => length === 1);
    }, "the waiter is queued on each node");
    const released = performance.now();
    await Promise.all(nodes.map((node) => node.direct.del(`lock:${key}`)));
    const lease = await wait;
    expect(performance.now() - released).toBeLessThan(soonMs);
    expect(await lease.release()).toBe(true);
  });
});
