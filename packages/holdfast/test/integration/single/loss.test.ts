import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as pause } from "node:timers/promises";

import { isLockError } from "holdfast";
import { expect, test } from "vitest";
import { abortOf, block, waitUntil } from "@holdfast/test-kit";

import {
  onCleanup,
  connect,
  direct,
  newKey,
  onSharedRedis,
  open,
  ownProxy,
  ownServer,
  reasonOf,
  renewals,
  shared,
  slackMs,
  warmUp,
} from "../../support/fault-fixture.ts";

onSharedRedis("a lease on a real server", () => {
  // The key.

  test.each([
    ["deleted", "expired"],
    ["acquired by another", "stolen"],
  ])("is reported lost within one renewal after its key was %s", async (how, reason) => {
    const key = newKey();
    const locks = open(connect(shared.port));
    await warmUp(locks);
    const lease = await locks.acquire(key, { ttlMs: 3_000 });
    const aborted = abortOf(lease.signal);
    const changedAt = performance.now();
    await (how === "deleted" ? direct.del(`lock:${key}`) : direct.set(`lock:${key}`, "another's"));
    expect((await aborted) - changedAt).toBeLessThan(1_000 + slackMs); // the validity ends after 3 s
    expect(reasonOf(lease.signal)).toBe(reason);
    expect(lease.remainingMs()).toBe(0);
    expect(await lease.release()).toBe(false);
    expect(await direct.get(`lock:${key}`)).toBe(how === "deleted" ? null : "another's");
    await direct.del(`lock:${key}`);
  });

  test("is reported lost at once when notifications return, if its key vanished in between", async () => {
    const key = newKey();
    const locks = open(connect(shared.port));
    await warmUp(locks);
    const lease = await locks.acquire(key, { ttlMs: 30_000 });
    const aborted = abortOf(lease.signal);
    const changedAt = performance.now();
    await Promise.all([direct.call("CLIENT", "KILL", "TYPE", "pubsub"), direct.del(`lock:${key}`)]);
    expect((await aborted) - changedAt).toBeLessThan(3_000); // the first renewal would be due after 10 s
    expect(reasonOf(lease.signal)).toBe("expired");
  });

  test("is reported lost at its first renewal after its server restarted empty", async () => {
    const server = await ownServer();
    const lease = await open(connect(server.port)).acquire(newKey(), { ttlMs: 6_000 });
    const aborted = abortOf(lease.signal);
    const { validUntil } = lease;
    server.kill("SIGKILL");
    await server.stop();
    await ownServer({ port: server.port });
    expect(await aborted).toBeLessThan(validUntil - 6_000 / 3);
    expect(reasonOf(lease.signal)).toBe("expired");
  });

  // The server.

  test("under a frozen server aborts its signal at validUntil", async () => {
    const server = await ownServer();
    const lease = await open(server.client()).acquire(newKey(), { ttlMs: 2_000 });
    const { signal } = lease;
    const aborted = abortOf(signal);
    server.freeze();
    onCleanup(() => {
      server.thaw();
    });
    const { validUntil } = lease;
    const loopDelay = monitorEventLoopDelay({ resolution: 1 });
    const measuring = setTimeout(() => loopDelay.enable(), validUntil - performance.now() - 200);
    onCleanup(() => {
      clearTimeout(measuring);
      loopDelay.disable();
    });
    const abortedAt = await aborted;
    await pause(10); // a stall is measured at its end
    const loopDelayMs = loopDelay.max / 1e6;
    expect(lease.validUntil).toBe(validUntil);
    expect(abortedAt).toBeGreaterThanOrEqual(validUntil - 51); // a signal aborts up to 50 ms early, because timers may be late
    expect(abortedAt).toBeLessThanOrEqual(validUntil + 50 + loopDelayMs);
    expect(reasonOf(signal)).toBe("engine-unreachable");
  });

  test("with the event loop blocked past the TTL throwIfLost throws before any timer ran", async () => {
    const lease = await open(connect(shared.port)).acquire(newKey(), { ttlMs: 100 });
    const { signal } = lease;
    lease.throwIfLost();
    block(lease.remainingMs() + 5);
    expect(lease.remainingMs()).toBe(0);
    expect(() => {
      lease.throwIfLost();
    }).toThrow(expect.toSatisfy((error: unknown) => isLockError(error, "lease-lost")));
    expect(reasonOf(signal)).toBe("expired");
  });

  test("survives a renewal whose reply is lost together with its connection", async () => {
    const proxy = await ownProxy(shared);
    const key = newKey();
    const outcomes = renewals(key);
    const lease = await open(connect(proxy.port)).acquire(key, { ttlMs: 2_000 });
    await proxy.loseNextReply(/extend/);
    const known = lease.validUntil;
    await waitUntil(() => lease.validUntil > known + 1_000 || lease.signal.aborted, "two more renewals");
    expect([lease.signal.aborted, outcomes.includes("lost")]).toEqual([false, false]);
  });

  test("survives renewals without a reply, and is renewed when the server answers again", async () => {
    const key = newKey();
    const outcomes = renewals(key);
    const locks = open(connect(shared.port), { commandTimeoutMs: 150 });
    const lease = await locks.acquire(key, { ttlMs: 3_000 });
    await waitUntil(() => outcomes.includes("extended"), "the first renewal");
    await direct.client("PAUSE", 1_600, "ALL");
    await waitUntil(() => outcomes.includes("unknown"), "a failing renewal");
    const seen = outcomes.length;
    await waitUntil(() => outcomes.slice(seen).includes("extended") || lease.signal.aborted, "a renewal");
    expect([lease.signal.aborted, lease.remainingMs() > 0]).toEqual([false, true]);
  });
});
