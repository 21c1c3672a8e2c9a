import { rejection, waitUntil } from "@holdfast/test-kit";
import { faultyClient, manualClock } from "holdfast/testing";
import { expect, test } from "vitest";

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
import { commandText } from "../../support/diagnostics-log.ts";

/** ioredis resends commands without a reply, and the second reply does not know the lease. */
onSharedRedis("a release whose reply was lost and that the client sends again", () => {
  test("counts as released, and fails no finished work", async () => {
    const proxy = await ownProxy(shared);
    const locks = open(connect(proxy.port, { retryStrategy: () => 20 }));
    await warmUp(locks);
    const lease = await locks.acquire(newKey());
    const lost = proxy.loseNextReply(/\brelease\b/);
    expect(await lease.release()).toBe(true);
    await lost;
    const lostAgain = proxy.loseNextReply(/\brelease\b/);
    expect(await locks.withLock(newKey(), () => "done")).toBe("done");
    await lostAgain;
  });

  test("counts as released if it queues the next caller of this process", async () => {
    const proxy = await ownProxy(shared);
    const locks = open(connect(proxy.port, { retryStrategy: () => 20 }), {}, { handover: { max: 0 } });
    const there = open(connect(shared.port));
    await Promise.all([warmUp(locks), warmUp(there)]);
    const key = newKey();
    const lease = await locks.acquire(key);
    const other = there.acquire(key);
    await waitUntil(async () => (await there.inspect(key)).waiterCount === 1, "another process waits");
    const next = locks.acquire(key, { waitMs: 20_000 });
    const lost = proxy.loseNextReply(/\brelease\b/);
    expect(await lease.release()).toBe(true);
    await lost;
    await (await other).release();
    await (await next).release();
  });
});

onSharedRedis("a release that continues because its replies are lost", () => {
  test("ends the grant that a late request of its own token got in between, and no other", async () => {
    const key = newKey();
    const clock = manualClock(); // of the late request
    const { connection, controls } = faultyClient(connect(shared.port), { clock });
    const here = open(connection, { commandTimeoutMs: 200 });
    const [there, other] = [open(connect(shared.port)), open(connect(shared.port))];
    await Promise.all([warmUp(here), warmUp(there), warmUp(other)]);
    const isHeld = async (): Promise<boolean> => (await direct.exists(`lock:${key}`)) === 1;

    controls.duplicate(({ args }) => commandText(args)[0] === "acquire", 1_000);
    const lease = await here.acquire(key, { ttlMs: 30_000, renew: false });
    controls.duplicate(0, 0);
    controls.dropReply(isRelease, "reset");
    expect((await rejection(lease.release())).error).toMatchObject({ outcome: "unknown" });
    expect(await isHeld()).toBe(false);
    controls.refuse(new Error("Connection is closed."));
    await clock.advance(1_000);
    await waitUntil(isHeld, "the late request is granted");
    const waiting = there.acquire(key, { waitMs: 20_000 });
    controls.dropReply(() => false);
    controls.refuse(null);
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await here.inspect(key); // earlier commands are executed
    expect(await other.tryAcquire(key)).toBeNull();
    expect(await next.release()).toBe(true);
  });

  function isRelease({ args }: { args: readonly string[] }): boolean {
    return commandText(args)[0]?.startsWith("release") === true;
  }
});
