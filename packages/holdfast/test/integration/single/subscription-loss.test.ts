import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";

import type { Locks } from "holdfast";
import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { waitUntil } from "@holdfast/test-kit";

import {
  onCleanup,
  connect,
  direct,
  newKey,
  onSharedRedis,
  open,
  ownProxy,
  shared,
  warmUp,
} from "../../support/fault-fixture.ts";

onSharedRedis("a subscription", () => {
  test("that is closed late does not switch off its successor", async () => {
    const proxy = await ownProxy(shared);
    const client = connect(proxy.port, { retryStrategy: () => 50, disconnectTimeout: 1_000 });
    const subscribers = duplicatesOf(client);
    const locks = open(client, { commandTimeoutMs: 300 });
    await warmUp(locks);
    const closed = once(subscribers[0] as Redis, "close");
    proxy.halfOpenSubscriptions();
    proxy.cut("commands");
    await waitUntil(() => subscribers.length === 2, "a second subscription beside the half-open one");
    await waitUntil(() => isSubscribed(locks), "the subscription is verified");
    await closed;
    const key = newKey();
    const held = await open(connect(shared.port)).acquire(key);
    const waiting = locks.acquire(key, { waitMs: 10_000 });
    await waitUntil(
      async () => (await direct.zcard(`holdfast:queue:{lock:${key}}`)) === 1,
      "the waiter may queue",
      2_000,
    );
    expect(await isSubscribed(locks)).toBe(true);
    await held.release();
    expect(await (await waiting).release()).toBe(true);
  });

  test("comes back although the client that made it never reconnects", async () => {
    const locks = open(connect(shared.port, { retryStrategy: () => null }), { commandTimeoutMs: 200 });
    await warmUp(locks);
    const published = nodeEvents();
    await direct.call("CLIENT", "KILL", "TYPE", "pubsub");
    await waitUntil(() => published.includes("subscription-lost"), "the loss is known");
    await waitUntil(
      () => published.includes("notifications-proved"),
      "notifications are verified again",
      5_000,
    );
    expect(await isSubscribed(locks)).toBe(true);
  });
});

/** The clients that are made from this client, as they are made. */
function duplicatesOf(client: Redis): Redis[] {
  const duplicates: Redis[] = [];
  const duplicate = client.duplicate.bind(client);
  client.duplicate = (...given: Parameters<typeof duplicate>) => {
    const made = duplicate(...given);
    duplicates.push(made);
    return made;
  };
  return duplicates;
}

async function isSubscribed(locks: Locks): Promise<boolean> {
  return (await locks.admin.nodes())[0]?.notifications === "verified";
}

/** The diagnostics of nodes, as they come. */
function nodeEvents(): string[] {
  const events: string[] = [];
  const listen = (message: unknown): void => void events.push((message as { event: string }).event);
  subscribe("holdfast:node", listen);
  onCleanup(() => void unsubscribe("holdfast:node", listen));
  return events;
}
