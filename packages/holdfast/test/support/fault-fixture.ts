import { spawn, type ChildProcess } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

import { createLocks, LeaseLostError, type Locks, type LocksOptions } from "holdfast";
import { redis, type RedisClient, type RedisOptions } from "holdfast/redis";
import { Redis, type RedisOptions as ClientOptions } from "ioredis";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import {
  startProxy,
  type Proxy,
  startRedis,
  type RedisServer,
  timeFactor,
  waitUntil,
} from "@holdfast/test-kit";

import type { RenewTrace } from "../../src/diagnostics.ts";
import { onRedis } from "./servers.ts";

/** The lateness that tests allow for a loaded machine. A real fault causes a much larger lateness. */
export const slackMs: number = 800 * timeFactor;

export let shared: RedisServer;
export let direct: Redis;
let cleanups: (() => void | Promise<void>)[] = [];
let keys = 0;

/** `describe` for tests of faults, with one server for the file. After each test no key may remain on the server. */
export function onSharedRedis(name: string, tests: () => void): void {
  onRedis(name, () => {
    beforeAll(async () => {
      shared = await startRedis();
      direct = shared.client();
    });

    afterEach(async () => {
      for (const cleanup of cleanups.reverse()) {
        await cleanup();
      }
      cleanups = [];
      await waitUntil(async () => (await direct.keys("lock:*")).length === 0, "no lock remains");
      await waitUntil(async () => (await direct.keys("holdfast:queue:*")).length === 0, "no queue remains");
    });

    afterAll(async () => {
      await shared.stop();
    });

    tests();
  });
}

export function newKey(): string {
  keys += 1;
  return `fault:${process.pid}:${keys}`;
}

/** The cleanups after the test, in reverse order. */
export function onCleanup(cleanup: () => void | Promise<void>): void {
  cleanups.push(cleanup);
}

export function open(client: RedisClient, options?: RedisOptions, locksOptions?: LocksOptions): Locks {
  const locks = createLocks(redis(client, options), { closeTimeoutMs: 1_000, ...locksOptions });
  onCleanup(() => locks.close());
  return locks;
}

/** A client that reconnects forever, perhaps by a proxy. */
export function connect(port: number, options?: Omit<ClientOptions, "protocol" | "replyMapping">): Redis {
  const client = new Redis(port, "127.0.0.1", { ...options });
  client.on("error", () => undefined);
  onCleanup(() => {
    client.disconnect();
  });
  return client;
}

export async function ownServer(options?: {
  args?: string[];
  port?: number;
  env?: Readonly<Record<string, string>>;
}): Promise<RedisServer> {
  const server = await startRedis(options);
  onCleanup(() => server.stop());
  return server;
}

export async function ownProxy(server: RedisServer): Promise<Proxy> {
  const proxy = await startProxy(server.port);
  onCleanup(() => proxy.stop());
  return proxy;
}

/** Acquires and releases once, and awaits the subscription, so that every connection is established. */
export async function warmUp(locks: Locks): Promise<void> {
  await locks.withLock(newKey(), () => undefined);
  await waitUntil(
    async () => (await locks.admin.nodes())[0]?.notifications === "verified",
    "the subscription is verified",
  );
}

export function reasonOf(signal: AbortSignal): string {
  expect(signal.reason).toBeInstanceOf(LeaseLostError);
  return (signal.reason as LeaseLostError).reason;
}

/** The outcomes of the renewals of a key, in order. */
export function renewals(key: string): string[] {
  const outcomes: string[] = [];
  const listen = (message: unknown): void => {
    const trace = message as RenewTrace;
    if (trace.key === key) {
      outcomes.push(String(trace.outcome));
    }
  };
  subscribe("tracing:holdfast:renew:asyncEnd", listen);
  onCleanup(() => void unsubscribe("tracing:holdfast:renew:asyncEnd", listen));
  return outcomes;
}

export function start(
  program: string,
  ...args: (string | number)[]
): { child: ChildProcess; lines: string[] } {
  const path = fileURLToPath(new URL(`${program}`, import.meta.url));
  const child = spawn(process.execPath, [path, ...args.map(String)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: string[] = [];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    lines.push(...text.split("\n").filter((line) => line !== ""));
  });
  onCleanup(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    }
  });
  return { child, lines };
}
