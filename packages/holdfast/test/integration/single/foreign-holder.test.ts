import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { timeFactor, waitUntil } from "@holdfast/test-kit";

import { connect, direct, newKey, onSharedRedis, open, shared, warmUp } from "../../support/fault-fixture.ts";

/** Without faster polls a waiter would notice the end of another program's lock after 5 s. */
const soonMs = 2_500 * timeFactor;
const observedMs = 4_000;

onSharedRedis("while another program holds the lock", () => {
  test("only the first waiter polls often, and is granted soon after the release", async () => {
    const key = newKey();
    const processes = Array.from({ length: 3 }, () => open(connect(shared.port)));
    await Promise.all(processes.map((locks) => warmUp(locks)));
    await direct.set(`lock:${key}`, "5f2b8c1e-another-program", "PX", 60_000);
    const waits = processes.map((locks) => locks.acquire(key));
    await waitUntil(async () => (await queueLength(key)) === 3, "the waiters are queued");

    const polls = await pollsOf(direct, key, observedMs);
    expect(polls.length).toBeGreaterThan(2);
    expect(polls.length).toBeLessThanOrEqual((observedMs / 1_000) * 4);
    const counts = [...new Set(polls)].map((sender) => polls.filter((one) => one === sender).length);
    expect(counts.filter((count) => count > 1).length).toBe(1); // the others poll every 5 s

    const released = performance.now();
    await direct.del(`lock:${key}`);
    const first = await Promise.race(waits);
    expect(performance.now() - released).toBeLessThan(soonMs);
    await first.release();
    await Promise.all(waits.map(async (wait) => (await wait).release()));
  });

  test("without a TTL a waiter polls as often", async () => {
    const key = newKey();
    const locks = open(connect(shared.port));
    await warmUp(locks);
    await direct.set(`lock:${key}`, "another program");
    const wait = locks.acquire(key);
    await waitUntil(async () => (await queueLength(key)) === 1, "the waiter is queued");
    const released = performance.now();
    await direct.del(`lock:${key}`);
    const lease = await wait;
    expect(performance.now() - released).toBeLessThan(soonMs);
    expect(await lease.release()).toBe(true);
  });
});

function queueLength(key: string): Promise<number> {
  return direct.zcard(`holdfast:queue:{lock:${key}}`);
}

/** The senders of the calls that name a key, within that time. */
async function pollsOf(client: Redis, key: string, ms: number): Promise<string[]> {
  const senders: string[] = [];
  const monitor = await client.duplicate().monitor();
  monitor.on("monitor", (_time: string, words: string[], sender: string) => {
    if (sender !== "lua" && words.includes(`lock:${key}`)) {
      senders.push(sender);
    }
  });
  await new Promise((resolve) => setTimeout(resolve, ms));
  monitor.disconnect();
  return senders;
}
