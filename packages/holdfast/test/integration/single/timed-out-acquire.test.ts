import { expect, test } from "vitest";
import { rejection, waitUntil } from "@holdfast/test-kit";

import {
  connect,
  direct,
  newKey,
  onSharedRedis,
  open,
  ownProxy,
  shared,
  slackMs,
  warmUp,
} from "../../support/fault-fixture.ts";

const ttlMs = 60_000;
const waitMs = 700;

onSharedRedis("an acquire that timed out", () => {
  test.each([
    ["waits for its replies", {}],
    ["drops commands", { commandTimeout: 200 }],
  ])("an acquire that timed out leaves no residue, with a client that %s", async (_how, clientOptions) => {
    const proxy = await ownProxy(shared);
    const locks = open(connect(proxy.port, clientOptions));
    await warmUp(locks);
    const key = newKey();
    proxy.pause("replies");
    const acquiring = rejection(locks.acquire(key, { ttlMs, waitMs }));
    await waitUntil(
      async () => (await direct.exists(`lock:${key}`)) === 1,
      "the lock is granted on the server",
    );
    const { error, afterMs } = await acquiring;
    expect(error).toMatchObject({ code: "engine-unavailable", retryable: true });
    expect(afterMs).toBeLessThan(waitMs + slackMs);
    proxy.resume("replies");
    await waitUntil(
      async () => (await direct.exists(`lock:${key}`)) === 0,
      "the lock is free, long before its TTL has passed",
      3_000,
    );
    const lease = await locks.tryAcquire(key, { ttlMs });
    expect(await lease?.release()).toBe(true);
  });
});
