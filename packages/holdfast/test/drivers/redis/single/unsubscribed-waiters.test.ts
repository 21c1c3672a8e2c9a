import { subscribe, unsubscribe } from "node:diagnostics_channel";

import type { RedisClient } from "holdfast/redis";
import { Redis } from "ioredis";
import { describe, expect, test, vi, type TestContext } from "vitest";
import { startProxy, type Proxy, startRedis } from "@holdfast/test-kit";

import {
  later,
  describeWaiters,
  open,
  probe,
  queued,
  queueOf,
  scriptCalls,
  server,
  promptMs,
  unique,
} from "../../../support/waiter-fixture.ts";

describeWaiters(() => {
  describe("a waiter without notifications", () => {
    test("does not queue before its subscription is verified", async (context) => {
      const key = unique();
      const proxy = await through(context);
      proxy.holdBack(/ssubscribe/i);
      await polls(context, key, proxy, async () => {
        proxy.releaseHeld();
        await queued(key, 1);
      });
    });

    test("does not queue before it received a notification", async (context) => {
      const key = unique();
      const proxy = await through(context);
      proxy.dropMatching(/smessage/);
      await polls(context, key, proxy, async () => {
        proxy.dropMatching(undefined);
        await queued(key, 1);
      });
    });

    test("gets the lock by polling if a proxy lets no subscription through, and reports the state", async (context) => {
      const proxy = await through(context);
      proxy.holdBack(/ssubscribe/i);
      await pollsOnly(context, proxyClient(context, proxy));
    });

    test("gets the lock by polling if notifications are lost, and reports the state", async (context) => {
      const proxy = await through(context);
      proxy.dropMatching(/smessage/);
      await pollsOnly(context, proxyClient(context, proxy));
    });

    test("gets the lock by polling if it may not use channels, and reports the state", async (context) => {
      await probe.acl("SETUSER", "deaf", "on", ">secret", "~*", "+@all", "resetchannels");
      await pollsOnly(context, server.client({ username: "deaf", password: "secret" }));
    });

    test("does not try one connection after the other if all are refused", async (context) => {
      const proxy = await through(context);
      proxy.refuse(true);
      const client = server.client();
      client.duplicate = () => proxyClient(context, proxy);
      const begun = performance.now();
      await pollsOnly(context, client);
      const seconds = (performance.now() - begun) / 1_000;
      expect(proxy.refusals).toBeGreaterThan(2);
      expect(proxy.refusals).toBeLessThan(20 + 10 * seconds);
    });

    test("gets the lock by polling if its subscription is at another server, and reports the state", async (context) => {
      const other = await startRedis();
      context.onTestFinished(() => other.stop());
      const client = server.client();
      client.duplicate = () => other.client();
      await pollsOnly(context, client);
    });
  });
});

async function through(context: TestContext): Promise<Proxy> {
  const proxy = await startProxy(server.port);
  context.onTestFinished(() => proxy.stop());
  return proxy;
}

function proxyClient(context: TestContext, proxy: Proxy): Redis {
  const client = new Redis({ host: "127.0.0.1", port: proxy.port });
  client.on("error", () => undefined);
  context.onTestFinished(() => {
    client.disconnect();
  });
  return client;
}

/** The waiter polls again and again, and has no queue entry until it is subscribed. */
async function polls(
  context: TestContext,
  key: string,
  proxy: Proxy,
  heal: () => Promise<void>,
): Promise<void> {
  const holder = await open(context).acquire(key);
  const deaf = open(context, {}, {}, proxyClient(context, proxy));
  const waiter = later(deaf.acquire(key, { waitMs: 20_000 }));
  const callsBefore = await scriptCalls();
  await vi.waitUntil(async () => (await scriptCalls()) >= callsBefore + 6, { interval: 10 });
  expect(await probe.zcard(queueOf(key))).toBe(0);
  await heal();
  await holder.release();
  await (await waiter).release();
}

/** A waiter that never receives a notification is served as well, without a queue entry at any time. */
async function pollsOnly(context: TestContext, client: RedisClient): Promise<void> {
  const key = unique();
  const events: unknown[] = [];
  const listener = (message: unknown): void => {
    events.push((message as { event: unknown }).event);
  };
  subscribe("holdfast:node", listener);
  context.onTestFinished(() => {
    unsubscribe("holdfast:node", listener);
  });
  const holder = await open(context).acquire(key);
  const deaf = open(context, {}, { commandTimeoutMs: 300 }, client);
  const waiter = later(deaf.acquire(key, { waitMs: 30_000 }));
  await vi.waitFor(() => {
    expect(events).toContain("notifications-unavailable");
  });
  expect(await probe.zcard(queueOf(key))).toBe(0);
  await holder.release();
  const released = performance.now();
  await (await waiter).release();
  expect(performance.now() - released).toBeLessThan(promptMs + 1_000);
}
