import { createLocks, type Locks } from "holdfast";
import { redis, type RedisClient } from "holdfast/redis";
import { rejection, startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";
import { Redis as Ioredis6 } from "ioredis";
import { Redis as Ioredis5 } from "ioredis5";
import { createClient as createClient6 } from "redis";
import { createClient as createClient4 } from "redis4";
import { createClient as createClient5 } from "redis5";
import { afterEach, beforeEach, expect, test } from "vitest";

import { onRedis } from "../../support/servers.ts";

onRedis("The connection that waits for replicas", () => {
  let primary: RedisServer;
  let replica: RedisServer;
  let probe: Ioredis6;
  let cleanups: (() => unknown)[];

  beforeEach(async () => {
    primary = await startRedis({ args: ["--repl-diskless-sync-delay", "0"] });
    replica = await startRedis({ args: ["--replicaof", `127.0.0.1 ${primary.port}`] });
    probe = primary.client();
    cleanups = [];
    await waitUntil(async () => (await probe.wait(1, 100)) === 1, "the replica follows");
  });

  afterEach(async () => {
    for (const cleanup of cleanups.reverse()) {
      await cleanup();
    }
    await replica.stop();
    await primary.stop();
  });

  async function open(client: RedisClient): Promise<Locks> {
    const locks = createLocks(redis(client, { minReplicas: 1 }));
    cleanups.push(() => locks.close());
    await locks.withLock("warm up", () => undefined);
    return locks;
  }

  function ioredis(version: number, options: object): Ioredis5 | Ioredis6 {
    const client = version === 5 ? new Ioredis5(options) : new Ioredis6(options);
    client.on("error", () => undefined);
    cleanups.push(() => {
      client.disconnect();
    });
    return client;
  }

  function address(): { url: string } {
    return { url: `redis://127.0.0.1:${primary.port}` };
  }

  async function expectGrant(locks: Locks): Promise<void> {
    expect(await (await locks.acquire("key", { waitMs: 30_000 })).release()).toBe(true);
  }

  test.each([6, 5])("is used again after ioredis %d dropped a WAIT without an error", async (version) => {
    const options = { port: primary.port, autoResendUnfulfilledCommands: false };
    const locks = await open(ioredis(version, options));
    replica.freeze();
    const tried = rejection(locks.tryAcquire("key"));
    let blocked: string | undefined;
    await waitUntil(async () => {
      blocked = /^id=(\d+) .* flags=b .* cmd=wait /m.exec(String(await probe.client("LIST")))?.[1];
      return blocked !== undefined;
    }, "the connection waits for the replica");
    await probe.call("client", "kill", "id", String(blocked));
    replica.thaw();
    expect((await tried).error).toMatchObject({ retryable: true, outcome: "none" });
    await expectGrant(locks);
  });

  test.each([6, 5])("comes back with ioredis %d that was ended and connected again", async (version) => {
    const client = ioredis(version, { port: primary.port });
    const locks = await open(client);
    client.disconnect();
    await waitUntil(() => client.status === "end", "the client has ended");
    await client.connect();
    await expectGrant(locks);
  });

  test.each([
    ["6", () => createClient6(address())],
    ["5", () => createClient5(address())],
    ["4", () => createClient4(address())],
  ])("comes back with node-redis %s that was ended and connected again", async (_version, make) => {
    const client = make();
    client.on("error", () => undefined);
    await client.connect();
    cleanups.push(() => client.disconnect());
    const locks = await open(client);
    await client.disconnect();
    await client.connect();
    await expectGrant(locks);
  });
});
