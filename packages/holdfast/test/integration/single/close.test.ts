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
  warmUp,
} from "../../support/fault-fixture.ts";

onSharedRedis("close", () => {
  test("leaves no residue of a request that was under way", async () => {
    const key = newKey();
    const proxy = await ownProxy(shared);
    const client = connect(proxy.port);
    const locks = open(client);
    await warmUp(locks);
    proxy.pause("replies");
    const refused = rejection(locks.acquire(key, { ttlMs: 30_000 }));
    await waitUntil(
      async () => (await direct.exists(`lock:${key}`)) === 1,
      "the lock is granted on the server",
    );
    const closing = locks.close();
    proxy.resume("replies");
    await closing;
    await client.quit();
    expect((await refused).error).toMatchObject({ code: "closed" });
    expect(await direct.exists(`lock:${key}`)).toBe(0);
  });

  test("leaves an orphan to expire", async () => {
    const key = newKey();
    const locks = open(connect(shared.port));
    const lease = await locks.acquire(key, { ttlMs: 30_000 });
    lease.orphan();
    await locks.close();
    expect(await direct.pttl(`lock:${key}`)).toBeGreaterThan(20_000);
    await direct.del(`lock:${key}`);
  });
});
