import type { Lockable } from "holdfast";
import { faultyClient } from "holdfast/testing";
import { expect, test } from "vitest";
import { rejection, timeFactor, waitUntil } from "@holdfast/test-kit";

import { executeSingleScript } from "../../../src/drivers/redis/protocol/scripts.generated.ts";
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

/** Blocks this process. Its timers then run before it reads the replies that have arrived. */
function blockFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** A waiter without a notification polls after 5 s. */
const soonMs = 2_500 * timeFactor;

onSharedRedis("a reply that comes late", () => {
  test("to an abandoned attempt does not touch the grant of its repeat", async () => {
    const key = newKey();
    const { connection, controls } = faultyClient(connect(shared.port));
    const [here, there] = [open(connection), open(connect(shared.port))];
    await warmUp(here);
    controls.delay({ replyMs: 400 });
    const attempt = { attemptId: "job 1", ttlMs: 30_000, renew: false };
    const { error } = await rejection(here.acquire(key, { ...attempt, waitMs: 200 }));
    expect(error).toMatchObject({ code: "engine-unavailable", outcome: "unknown" });
    const lease = await here.acquire(key, { ...attempt, waitMs: 5_000 }); // replies come in order, so the late one came before
    await here.inspect(key); // commands after it are executed
    expect(await there.tryAcquire(key)).toBeNull();
    expect(await lease.release()).toBe(true);
  });

  test.each(["mutex", "semaphore"])("to a %s's request does not revive a transferred lease", async (kind) => {
    const key = newKey();
    const [here, there] = [open(connect(shared.port)), open(connect(shared.port))];
    const [own, other] = [here, there].map((locks) =>
      kind === "mutex" ? locks.mutex(key) : locks.semaphore(key, { limit: 1 }),
    ) as readonly Lockable[] as readonly [Lockable, Lockable];
    const lease = await own.acquire({ ttlMs: 300, renew: false });
    const K = `lock:${key}`;
    const held = kind === "mutex" ? await direct.get(K) : (await direct.zrange(K, "0", "0"))[0];
    const [token = ""] = held?.split(" ") ?? [];
    const given = lease.transfer();
    await waitUntil(async () => (await there.inspect(key)).holders.length === 0, "the lease has ended");
    expect(await (await other.acquire()).release()).toBe(true);
    const keys = ["holdfast:fence", K, `holdfast:queue:{${K}}`, `holdfast:info:{${K}}`];
    const request = ["acquire", token, "300 1 0 s 300", "30000", "1", "0", "", String(Date.now() + 5_000)];
    await direct.eval(executeSingleScript.source, 4, ...keys, "100", ...request); // resent by a client library
    expect((await there.inspect(key)).holders).toHaveLength(1);
    const { error } = await rejection(there.adopt(given));
    expect(error).toMatchObject({ code: "lease-lost", reason: "expired" });
    await direct.del(K);
  });

  test.each(["mutex", "semaphore"])("to a poll for a %s does not release the adopted lease", async (kind) => {
    const key = newKey();
    const proxy = await ownProxy(shared);
    const [here, there] = [open(connect(proxy.port)), open(connect(shared.port))];
    const [own, other] = [here, there].map((locks) =>
      kind === "mutex" ? locks.mutex(key) : locks.semaphore(key, { limit: 1 }),
    ) as readonly Lockable[] as readonly [Lockable, Lockable];
    await Promise.all([warmUp(here), warmUp(there)]);
    const ttlMs = 300;
    const held = await other.acquire({ ttlMs });
    const waiting = own.acquire({ ttlMs });
    await waitUntil(async () => (await there.inspect(key)).waiterCount === 1, "the waiter is queued");
    proxy.pause("answers");
    await proxy.serverSent(/\*2\r\n/); // the reply to a poll
    await held.release();
    const adopted = await there.adopt({ ...(await waiting).transfer(), ttlMs: 60_000 }); // granted by notification
    await adopted.extend(60_000);
    blockFor(3 * ttlMs);
    proxy.resume("answers");
    await here.inspect(key); // commands after the late reply are executed
    expect(await other.tryAcquire()).toBeNull();
    expect(await adopted.release()).toBe(true);
  });

  test("does not matter for a grant by a late notification, which the reply to a resent request has confirmed", async () => {
    const key = newKey();
    const proxy = await ownProxy(shared);
    const here = open(connect(proxy.port, { retryStrategy: () => 100 }));
    const there = open(connect(shared.port));
    await Promise.all([warmUp(here), warmUp(there)]);
    const held = await there.acquire(key);
    const lost = proxy.loseNextReply(/\bacquire\b/);
    proxy.pause("messages");
    const waiting = here.acquire(key, { ttlMs: 30_000 });
    await lost;
    expect(await direct.zcard(`holdfast:queue:{lock:${key}}`)).toBe(1);
    await held.release(); // The notification of the grant is delayed, and the client then resends its request.
    const lease = await waiting;
    await waitUntil(async () => !(await isSubscribed()), "the lost connection is known");
    proxy.resume("messages");
    await waitUntil(isSubscribed, "the ping after the grant is received");
    await here.inspect(key); // commands after the notification are executed
    expect(await there.tryAcquire(key)).toBeNull();
    expect(await lease.release()).toBe(true);

    async function isSubscribed(): Promise<boolean> {
      return (await here.admin.nodes())[0]?.notifications === "verified";
    }
  });

  test("to a release with a next caller, after that caller aborted, still returns true", async () => {
    const key = newKey();
    const locks = open(connect(shared.port), {}, { handover: { max: 0 } });
    await warmUp(locks);
    const lease = await locks.acquire(key);
    const caller = new AbortController();
    const next = rejection(locks.acquire(key, { signal: caller.signal }));
    const released = lease.release();
    caller.abort("changed my mind");
    expect((await next).error).toBe("changed my mind");
    expect(await released).toBe(true);
  });

  test("or never, to a release with a next caller, leaves it released, and the next caller is served", async () => {
    const key = newKey();
    const { connection, controls } = faultyClient(connect(shared.port));
    const locks = open(connection, { commandTimeoutMs: 300 }, { handover: { max: 0 } });
    await warmUp(locks);
    const lease = await locks.acquire(key);
    const next = locks.acquire(key);
    let [isDropping, dropped] = [true, 0];
    controls.dropReply(({ args }) => isDropping && commandText(args).includes("release") && ++dropped > 0);
    const { error } = await rejection(lease.release());
    isDropping = false; // not earlier, because a late process still gets the reply to a repeat in time
    expect(error).toMatchObject({ code: "engine-unavailable", outcome: "unknown" });
    expect(dropped).toBeGreaterThan(0);
    expect(await (await next).release()).toBe(true); // the repeated release names the next grant again
  });
});

onSharedRedis("a repeat of an attempt", () => {
  test("that waits here as well is granted together with the first, by the same notification", async () => {
    const key = newKey();
    const [here, there] = [open(connect(shared.port)), open(connect(shared.port))];
    await Promise.all([warmUp(here), warmUp(there)]);
    const held = await there.acquire(key);
    const attempt = { attemptId: "job 2", ttlMs: 20_000 };
    const first = here.acquire(key, attempt);
    await waitUntil(async () => (await here.inspect(key)).waiterCount === 1, "the waiter is queued");
    const repeat = here.acquire(key, attempt);
    await here.inspect(key); // the repeat was sent before
    const releasedAt = performance.now();
    await held.release();
    const leases = await Promise.all([first, repeat]);
    expect(performance.now() - releasedAt).toBeLessThan(soonMs);
    expect(leases[1].fencingToken).toBe(leases[0].fencingToken);
    expect(await leases[0].release()).toBe(true);
  });
});
