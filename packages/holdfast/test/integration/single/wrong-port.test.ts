import { createLocks, isLockError } from "holdfast";
import { connect } from "holdfast/connect";
import { redis } from "holdfast/redis";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { rejection, waitUntil } from "@holdfast/test-kit";

import { onPostgres, startPostgres } from "../../support/postgres-server.ts";
import { newKey, onCleanup, onSharedRedis, ownServer, shared } from "../../support/fault-fixture.ts";

const advice = "is it a Redis, with TLS at both ends or at neither, and fewer than `maxclients` connections?";

async function messageFor(url: string): Promise<string> {
  const locks = createLocks(await connect(url, { commandTimeoutMs: 500 }));
  const { error } = await rejection(locks.acquire(newKey(), { waitMs: 1_000 }));
  await locks.close();
  expect(isLockError(error, "engine-unavailable")).toBe(true);
  return (error as Error).message;
}

onSharedRedis("the error", () => {
  test.each(["ioredis", "node-redis"])("of TLS to a port without TLS names TLS, by %s", async (client) => {
    expect(await messageFor(`rediss://127.0.0.1:${shared.port}?client=${client}`)).toContain(advice);
  });

  test("of a server without free connections names `maxclients`", async () => {
    const server = await ownServer();
    const user = new Redis(server.port);
    user.on("error", () => undefined);
    onCleanup(() => user.disconnect());
    await user.config("SET", "maxclients", "1");
    for (const client of ["ioredis", "node-redis"]) {
      expect(await messageFor(`redis://127.0.0.1:${server.port}?client=${client}`)).toMatch(
        /max number of clients|maxclients/,
      );
    }
  });

  test("names the blocking command of the program that the connection waits for", async () => {
    const client = new Redis(shared.port);
    onCleanup(() => client.disconnect());
    const locks = createLocks(redis(client, { commandTimeoutMs: 300 }));
    await locks.withLock(newKey(), () => undefined);
    for (const [name, block] of [
      ["BLPOP", () => client.blpop(newKey(), 5)],
      ["XREAD", () => client.xread("BLOCK", 5_000, "STREAMS", newKey(), "$")],
    ] as const) {
      const blocked = block();
      const { error } = await rejection(locks.acquire(newKey(), { waitMs: 400 }));
      expect((error as Error).message).toMatch(
        new RegExp(`answer.*: the program's ${name} blocks the connection; give it a client of its own`),
      );
      await blocked;
      await waitUntil(
        () =>
          locks
            .tryWithLock(newKey(), () => true)
            .then(
              () => true,
              () => false,
            ),
        "the server answers",
      );
    }
    await locks.close();
  });
});

onPostgres("the error of a redis: URL to the port of PostgreSQL", () => {
  test.each(["ioredis", "node-redis"])("asks whether a Redis is there, by %s", async (client) => {
    const { hostname, port } = new URL((await startPostgres()).url);
    expect(await messageFor(`redis://${hostname}:${port}?client=${client}`)).toContain(advice);
  });
});
