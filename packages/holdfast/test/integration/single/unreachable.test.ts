import { createLocks, isLockError, LeaseLostError } from "holdfast";
import { redis, type RedisClient } from "holdfast/redis";
import { Redis as Ioredis6 } from "ioredis";
import { Redis as Ioredis5 } from "ioredis5";
import { createClient as createClient6 } from "redis";
import { createClient as createClient4 } from "redis4";
import { expect, test } from "vitest";
import { abortOf, rejection, stablePort, waitUntil } from "@holdfast/test-kit";

import { newKey, onCleanup, onSharedRedis, ownServer } from "../../support/fault-fixture.ts";

interface Address {
  readonly host: string;
  readonly port: number;
}

/** Clients as users make them, which report their errors to a listener of the user. */
const libraries: Readonly<Record<string, (address: Address) => RedisClient>> = {
  "ioredis 6": (address) => ioredis(new Ioredis6(address)),
  "ioredis 5": (address) => ioredis(new Ioredis5(address)),
  "node-redis 6": (socket) => nodeRedis(createClient6({ socket })),
  "node-redis 4": (socket) => nodeRedis(createClient4({ socket })),
};

function ioredis(client: Ioredis5 | Ioredis6): RedisClient {
  client.on("error", () => undefined);
  onCleanup(() => client.disconnect());
  return client;
}

function nodeRedis(client: {
  on(event: "error", listener: () => void): unknown;
  connect(): Promise<unknown>;
  disconnect(): Promise<unknown>;
}): RedisClient {
  client.on("error", () => undefined);
  client.connect().catch(() => undefined);
  onCleanup(() => void client.disconnect().catch(() => undefined));
  return client as unknown as RedisClient;
}

onSharedRedis("an unreachable server", () => {
  test.each(Object.entries(libraries))("is named with the reason by a client of %s", async (_name, open) => {
    for (const [host, reason] of [
      ["127.0.0.1", /ECONNREFUSED/],
      ["no-such-host.invalid", /ENOTFOUND|EAI_AGAIN/],
    ] as const) {
      const port = await stablePort();
      const locks = createLocks(redis(open({ host, port }), { commandTimeoutMs: 300 }));
      const calls = {
        acquire: () => locks.acquire(newKey(), { waitMs: 600 }),
        try: () => locks.tryAcquire(newKey()),
      };
      for (const [name, call] of Object.entries(calls)) {
        const { error } = await rejection(call());
        expect(isLockError(error, "engine-unavailable") && error.retryable, name).toBe(true);
        const { message, cause } = error as Error;
        expect(message, name).toMatch(
          new RegExp(`^Redis at ${host}:${port}/0 is unreachable: .*(${reason.source})`),
        );
        expect((cause as NodeJS.ErrnoException).code, name).toMatch(reason);
      }
      await locks.close();
    }
  });

  test.each(Object.entries(libraries))("is the cause of a loss, by a client of %s", async (_name, open) => {
    const server = await ownServer();
    const locks = createLocks(
      redis(open({ host: "127.0.0.1", port: server.port }), { commandTimeoutMs: 300 }),
    );
    onCleanup(() => void locks.close());
    const lease = await locks.acquire(newKey(), { ttlMs: 1_500 });
    const loss = abortOf(lease.signal);
    server.kill("SIGKILL");
    await server.stop();
    await loss;
    const reason = lease.signal.reason as unknown;
    expect(reason).toBeInstanceOf(LeaseLostError);
    const { message, cause } = reason as LeaseLostError;
    expect(message).toMatch(
      /^The lease of .* is lost: engine-unreachable \(Redis at 127\.0\.0\.1:\d+\/0 is unreachable: .*ECONNREFUSED/,
    );
    expect(isLockError(cause, "engine-unavailable")).toBe(true);
    await locks.close();
  });

  test("that is frozen is named with the time of the wait", async () => {
    const server = await ownServer();
    const client = libraries["ioredis 6"]?.({ host: "127.0.0.1", port: server.port }) as RedisClient;
    const locks = createLocks(redis(client, { commandTimeoutMs: 300 }));
    const lease = await locks.acquire(newKey(), { ttlMs: 1_000 });
    server.kill("SIGSTOP");
    onCleanup(() => {
      server.kill("SIGCONT");
    });
    const { error } = await rejection(locks.acquire(newKey(), { waitMs: 400 }));
    expect((error as Error).message).toMatch(
      /^Redis at 127\.0\.0\.1:\d+\/0 (did not answer within \d+ ms|does not answer)$/,
    );
    await waitUntil(() => lease.signal.aborted, "the loss is reported");
    expect((lease.signal.reason as Error).message).toMatch(
      /engine-unreachable \((Redis at|the engine has not replied)/,
    );
    server.kill("SIGCONT");
    await locks.close();
  });
});
