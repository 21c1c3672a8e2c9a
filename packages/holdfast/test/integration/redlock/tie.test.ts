import { isLockError, type Locks } from "holdfast";
import { expect, test } from "vitest";
import { rejection, timeFactor } from "@holdfast/test-kit";

import { newKey, onQuorum, open, startNodes, warmUp, type QuorumNode } from "../../support/quorum-servers.ts";

const ttlMs = 60_000;
const waitMs = 1_000;
/** Far below the TTL, so no caller waited for an expiry. */
const slackMs = 2_000 * timeFactor;

onQuorum("a tie among an even number of nodes", () => {
  test.each([
    ["one of two nodes that refuses", 2],
    ["two of four nodes that refuse", 4],
  ])("%s: a try is refused as held, an acquire ends at waitMs, and no residue stays", async (_, count) => {
    const { half, locks } = await fixture(count);
    const key = newKey();
    await Promise.all(half.map(({ direct }) => direct.set(`lock:${key}`, "another's", "PX", ttlMs)));
    const begun = performance.now();
    const tried = await locks.tryAcquire(key, { ttlMs }).catch((error: unknown) => error);
    expect(tried === null || isLockError(tried, "quorum-not-reached")).toBe(true);
    expect(performance.now() - begun).toBeLessThan(slackMs);
    const { error, afterMs } = await rejection(locks.acquire(key, { ttlMs, waitMs }));
    expect(error).toMatchObject({
      code: expect.stringMatching(/^(wait-timeout|quorum-not-reached)$/),
      key,
    });
    expect(afterMs).toBeGreaterThan(waitMs - 20);
    expect(afterMs).toBeLessThan(waitMs + slackMs);
    await Promise.all(half.map((node) => node.loseData(key)));
    const lease = await locks.acquire(key, { ttlMs, waitMs });
    expect(await lease.release()).toBe(true);
  });

  test.each([
    ["one of two nodes that has lost the grant", 2],
    ["two of four nodes that have lost the grant", 4],
  ])("%s: a release ends at once, and reports the loss", async (_, count) => {
    const { half, locks } = await fixture(count);
    const key = newKey();
    const lease = await locks.acquire(key, { ttlMs, waitMs });
    await Promise.all(half.map((node) => node.loseData(key)));
    const begun = performance.now();
    expect(await lease.release()).toBe(false);
    expect(performance.now() - begun).toBeLessThan(slackMs);
  });
});

async function fixture(count: number): Promise<{ half: QuorumNode[]; locks: Locks }> {
  const nodes = await startNodes(count);
  const locks = open(nodes);
  await warmUp(locks);
  return { half: nodes.slice(count / 2), locks };
}
