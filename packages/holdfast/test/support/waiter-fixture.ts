import { randomUUID } from "node:crypto";

import { createLocks, type Locks, type LocksOptions } from "holdfast";
import { redis, type RedisClient, type RedisOptions } from "holdfast/redis";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, expect, vi, type TestContext } from "vitest";
import { type RedisServer, startRedis, timeFactor } from "@holdfast/test-kit";

import { mayRemain } from "./residue.ts";
import { onRedis } from "./servers.ts";

/** The shortest poll delay of a waiter for a long-held lock. */
export const pollMs = 5_000;
/** A grant within this time came without a poll. Only slow machines need most of it. */
export const promptMs = Math.min(2_000 * timeFactor, pollMs - 500);

export let server: RedisServer;
export let probe: Redis;

/** `describe` for tests of waiters, with one server for the file. At the end no key may remain on the server. */
export function describeWaiters(tests: () => void): void {
  onRedis("waiters", () => {
    beforeAll(async () => {
      server = await startRedis();
      probe = server.client();
    });

    afterAll(async () => {
      const remaining: string[] = [];
      for (const key of await probe.keys("*")) {
        if (!(await mayRemain(probe, key))) {
          remaining.push(key);
        }
      }
      await server.stop();
      expect(remaining).toEqual([]);
    });

    tests();
  });
}

export function open(
  context: TestContext,
  options: LocksOptions = {},
  driverOptions: RedisOptions = {},
  client: RedisClient = server.client(),
): Locks {
  const locks = createLocks(redis(client, driverOptions), options);
  context.onTestFinished(() => locks.close());
  return locks;
}

export async function queued(key: string, count: number): Promise<void> {
  await vi.waitFor(
    async () => {
      expect(await probe.zcard(queueOf(key))).toBe(count);
    },
    { interval: 10 },
  );
}

export function keysOf(key: string): Promise<string[]> {
  return probe.keys(`*${key}*`);
}

export function unique(): string {
  return `waiters-${randomUUID()}`;
}

/** Marks a promise as handled that is awaited later, or never if the test fails first. */
export function later<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

export function queueOf(key: string): string {
  return `holdfast:queue:{lock:${key}}`;
}

export async function scriptCalls(): Promise<number> {
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await probe.info("commandstats"))?.[1] ?? 0);
}
