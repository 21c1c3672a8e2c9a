import { until } from "@holdfast/lab";
import { expect, test } from "vitest";

import { connect, newKey, onSharedRedis, open, ownProxy, shared, warmUp } from "../support/fault-stage.ts";

/** ioredis sends what was not answered again by itself, and the second answer says that it is not ours. */
onSharedRedis("a release whose reply was lost and that the client sends again", () => {
  test("counts as released, and fails no finished work", async () => {
    const proxy = await ownProxy(shared);
    const locks = open(connect(proxy.port, { retryStrategy: () => 20 }));
    await warmUp(locks);
    const lease = await locks.acquire(newKey());
    const lost = proxy.loseNextReply(/"release"/);
    expect(await lease.release()).toBe(true);
    await lost;
    const lostAgain = proxy.loseNextReply(/"release"/);
    expect(await locks.withLock(newKey(), () => "done")).toBe("done");
    await lostAgain;
  });

  test("counts as released where the next caller of this process is queued by it", async () => {
    const proxy = await ownProxy(shared);
    const locks = open(connect(proxy.port, { retryStrategy: () => 20 }), {}, { handover: { max: 0 } });
    const there = open(connect(shared.port));
    await Promise.all([warmUp(locks), warmUp(there)]);
    const key = newKey();
    const lease = await locks.acquire(key);
    const other = there.acquire(key);
    await until(async () => (await there.inspect(key)).waiterCount === 1, "another process waits");
    const next = locks.acquire(key, { waitMs: 20_000 });
    const lost = proxy.loseNextReply(/"passOn"/);
    expect(await lease.release()).toBe(true);
    await lost;
    await (await other).release();
    await (await next).release();
  });
});
