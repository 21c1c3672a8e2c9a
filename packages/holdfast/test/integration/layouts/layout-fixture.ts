import { redis, type RedisOptions } from "holdfast/redis";
import { createLocks, type Locks } from "holdfast";
import { expect } from "vitest";
import { timeFactor, waitUntil } from "@holdfast/test-kit";

import { connect, direct, onCleanup, shared } from "../../support/fault-fixture.ts";

/** A holder of Redisson. */
export const thread = "1f3a2b4c-0d5e-4f60-8a7b-9c0d1e2f3a4b:57";
export const otherThread = "0a0b0c0d-0d5e-4f60-8a7b-9c0d1e2f3a4b:8";
/** The form of a field of this library. */
export const ownField: RegExp = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}:1$/;
/** Without a wake-up a waiter notices a release after 1 to 1.5 s. */
export const soonMs = 900 * timeFactor;

export function openLayout(options: RedisOptions): Locks {
  const locks = createLocks(redis(connect(shared.port), options), { closeTimeoutMs: 1_000 });
  onCleanup(async () => {
    await locks.close();
    const left = await direct.keys("*");
    const side = left.filter(
      (key) => key.startsWith("holdfast:layout:") && !/:(notes|seen|records):/.test(key),
    );
    expect(side).toEqual([]);
  });
  return locks;
}

/** The messages on a channel, from now on. */
export async function messagesOn(...channels: string[]): Promise<[channel: string, text: string][]> {
  const messages: [string, string][] = [];
  const subscriber = connect(shared.port);
  subscriber.on("message", (channel: string, text: string) => messages.push([channel, text]));
  await subscriber.subscribe(...channels);
  return messages;
}

/** Resolves when the process waits in the queue and its subscription to the channel is confirmed. */
export async function waitsFor(key: string, channel: string, subscribers = 1): Promise<void> {
  await waitUntil(
    async () => (await direct.zcard(`holdfast:layout:queue:{${key}}`)) > 0,
    "the waiter is queued",
  );
  await waitUntil(
    async () => Number((await direct.pubsub("NUMSUB", channel))[1]) >= subscribers,
    "the waiter is subscribed",
  );
}
