import type { Lease } from "holdfast";
import { expect, test } from "vitest";
import { rejection, timeFactor, waitUntil } from "@holdfast/test-kit";

import {
  connect,
  direct,
  newKey,
  onSharedRedis,
  open,
  ownProxy,
  shared,
  start,
  warmUp,
} from "../../support/fault-fixture.ts";

onSharedRedis("a lease on a real server", () => {
  // Grants without a receiver.

  test("a process that is frozen at its grant costs the next waiter at most 8 s, whatever the TTL", async () => {
    const key = newKey();
    const [holder, next] = [open(connect(shared.port)), open(connect(shared.port))];
    await Promise.all([warmUp(holder), warmUp(next)]);
    const held = await holder.acquire(key, { ttlMs: 60_000 });
    const { child, lines } = start("waits.mjs", shared.port, key, 60_000);
    await waitUntil(async () => (await holder.inspect(key)).waiterCount === 1, "the child is queued");
    await waitUntil(() => isEarlier(key), "the child came first, although the clocks may differ");
    const waiting = next.acquire(key, { ttlMs: 60_000, waitMs: 20_000 });
    await waitUntil(async () => (await holder.inspect(key)).waiterCount === 2, "both waiters are queued");
    child.kill("SIGSTOP");
    const releasedAt = performance.now();
    await held.release();
    expect((await holder.inspect(key)).holders).toMatchObject([{ owner: "child" }]);
    const lease = await waiting;
    const waitedMs = performance.now() - releasedAt;
    expect(waitedMs).toBeGreaterThan(2_500); // the claim of the frozen process was respected
    expect(waitedMs).toBeLessThan(8_000 * timeFactor);
    child.kill("SIGCONT");
    await waitUntil(async () => (await holder.inspect(key)).waiterCount === 1, "the child is queued again");
    expect(lines).toEqual([]);
    expect(await lease.release()).toBe(true);
    await waitUntil(() => lines.length > 0, "the child acquires the lock in the end");
    const { granted } = JSON.parse(lines[0] ?? "{}") as { granted?: string };
    expect(BigInt(granted ?? 0)).toBeGreaterThan(lease.fencingToken);
    child.kill("SIGKILL");
    await direct.del(`lock:${key}`);
  });

  /** Whether the waiter's ticket is older than the clocks of two processes may differ. */
  async function isEarlier(key: string): Promise<boolean> {
    const [member = ""] = await direct.zrange(`holdfast:queue:{lock:${key}}`, "0", "0");
    const ticket = Number(/:(\d+) /.exec(member)?.[1]);
    const [seconds = 0, micros = 0] = await direct.time();
    return Number(seconds) * 1_000_000 + Number(micros) > ticket + 200_000;
  }

  test("a caller that aborts while its grant is under way leaves the lock free", async () => {
    const proxy = await ownProxy(shared);
    const locks = open(connect(proxy.port), { commandTimeoutMs: 1_000 });
    await warmUp(locks);
    for (const call of [
      (key: string, signal: AbortSignal) => locks.acquire(key, { signal, ttlMs: 60_000 }),
      (key: string, signal: AbortSignal) => locks.tryAcquire(key, { signal, ttlMs: 60_000 }),
    ]) {
      const key = newKey();
      const caller = new AbortController();
      proxy.pause("replies");
      const refused = rejection(call(key, caller.signal));
      await waitUntil(
        async () => (await direct.exists(`lock:${key}`)) === 1,
        "the lock is granted on the server",
      );
      caller.abort("changed my mind");
      expect((await refused).error).toBe("changed my mind");
      proxy.resume("replies");
      await waitUntil(async () => (await direct.exists(`lock:${key}`)) === 0, "the grant is released");
    }
  });

  test("a waiter that aborts while its grant by notification is under way leaves the lock free", async () => {
    const proxy = await ownProxy(shared);
    const [holder, waiter] = [open(connect(shared.port)), open(connect(proxy.port))];
    await Promise.all([warmUp(holder), warmUp(waiter)]);
    const key = newKey();
    const held = await holder.acquire(key, { ttlMs: 60_000 });
    const caller = new AbortController();
    const refused = rejection(waiter.acquire(key, { signal: caller.signal, ttlMs: 60_000 }));
    await waitUntil(async () => (await holder.inspect(key)).waiterCount === 1, "the waiter is queued");
    proxy.pause("replies");
    await held.release();
    expect(await direct.exists(`lock:${key}`)).toBe(1);
    proxy.pause("requests"); // its cancellation must not arrive before the notification
    caller.abort("changed my mind");
    expect((await refused).error).toBe("changed my mind");
    proxy.resume("replies");
    proxy.resume("requests");
    await waitUntil(async () => (await direct.exists(`lock:${key}`)) === 0, "the grant is released");
  });

  // Lost replies.

  test.each([
    ["acquire", "resends commands", {}],
    ["acquire", "resends nothing", { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 }],
    ["tryAcquire", "resends nothing", { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 }],
  ] as const)(
    "a reply lost on a free lock: the next try of %s, with a client that %s, is the same grant",
    async (call, _how, clientOptions) => {
      const proxy = await ownProxy(shared);
      const locks = open(connect(proxy.port, clientOptions));
      await warmUp(locks);
      const key = newKey();
      const lost = proxy.loseNextReply(/\bacquire\b/);
      const acquiring = locks[call](key, { ttlMs: 60_000 });
      await lost;
      const held = await direct.get(`lock:${key}`);
      expect(held).not.toBeNull();
      const lease = (await acquiring) as Lease;
      expect(lease.fencingToken).toBe(BigInt(held?.split(" ")[1] ?? 0));
      expect(await direct.get(`lock:${key}`)).toBe(held);
      expect(await lease.release()).toBe(true);
    },
  );
});
