import { subscribe, unsubscribe } from "node:diagnostics_channel";

import { GlideClient, GlideClusterClient, type GlideClientConfiguration } from "@valkey/valkey-glide";
import { EngineError } from "holdfast";
import { redis } from "holdfast/redis";
import { expect, test } from "vitest";
import { limitMs, abortOf, rejection, stablePort, waitUntil, type RedisServer } from "@holdfast/test-kit";

import { detectConnection } from "../../../src/drivers/redis/clients/detect.ts";
import type { Script } from "../../../src/drivers/redis/protocol/script.ts";
import { sha1 } from "../../../src/runtime/random.ts";
import {
  connect,
  direct,
  newKey,
  onCleanup,
  onSharedRedis,
  open,
  ownProxy,
  ownServer,
  reasonOf,
  shared,
  warmUp,
} from "../../support/fault-fixture.ts";

const commandTimeoutMs = 500;

async function glide(
  ports: readonly number[],
  configuration?: Partial<GlideClientConfiguration>,
): Promise<GlideClient> {
  const addresses = ports.map((port) => ({ host: "127.0.0.1", port }));
  const client = await GlideClient.createClient({ addresses, ...configuration });
  onCleanup(() => client.close());
  return client;
}

onSharedRedis("Valkey GLIDE", () => {
  test("has the errors and the replies that ioredis has", async () => {
    const [byGlide, byIoredis] = [
      await glide([shared.port], { requestTimeout: 1 }),
      connect(shared.port),
    ].map(detectConnection);
    onCleanup(() => byGlide?.close?.());
    const codes = [
      "ERR",
      "LOADING",
      "READONLY",
      "NOPERM",
      "NOAUTH",
      "OOM",
      "MISCONF",
      "MASTERDOWN",
      "CLUSTERDOWN",
    ];
    const ownCodes = ["TRYAGAIN", "CROSSSLOT", "BUSY", "WRONGTYPE", "NODATABASE", "KINDMISMATCH", "COUNTER"];
    const scripts = [
      ...[...codes, ...ownCodes].map((code) => `return redis.error_reply('${code} first: 2 - Third: x')`),
      "return redis.call('nope')",
      "return redis.call('hset', KEYS[1], 'not a hash', '1')",
      "return {1, 'a', false, {'\\255', {}}, redis.status_reply('FINE'), 4503599627370495, ARGV[1]}",
    ];
    const key = newKey();
    await direct.set(key, "text");
    for (const source of scripts) {
      const script: Script = { name: "test", source, sha1: sha1(source) };
      const [reply, expected] = await Promise.all(
        [byGlide, byIoredis].map(async (connection) =>
          connection?.run(script, [key], ["ü"]).catch((error: unknown) => (error as Error).message),
        ),
      );
      expect(reply, source).toEqual(expected);
    }
    const [policy, page] = [
      await byGlide?.command("CONFIG", ["GET", "appendfsync"]),
      await byGlide?.command("SCAN", ["0"]),
    ];
    expect([policy, page]).toEqual([["appendfsync", "everysec"], await direct.scan("0")]);
    await direct.del(key);
  });

  test("verifies notifications again after a lost connection, and serves its waiter", async () => {
    const proxy = await ownProxy(shared);
    const locks = open(await glide([proxy.port]), { commandTimeoutMs });
    await warmUp(locks);
    const key = newKey();
    const held = await open(connect(shared.port)).acquire(key);
    const waiting = locks.acquire(key, { waitMs: 60_000 });
    await waitUntil(async () => (await locks.inspect(key)).waiterCount === 1, "it waits");
    const events = nodeEvents();
    proxy.cut();
    await waitUntil(() => events.includes("subscription-lost"), "the loss is known");
    await waitUntil(() => events.includes("notifications-proved"), "notifications are verified again");
    await held.release();
    expect(await (await waiting).release()).toBe(true);
  });

  test("survives messages that are not UTF-8", async () => {
    const locks = open(await glide([shared.port]));
    await warmUp(locks);
    const channels = (await direct.call("PUBSUB", "CHANNELS", "holdfast:grants:*")) as string[];
    const events = nodeEvents();
    for (const channel of channels) {
      await direct.publish(channel, Buffer.from([255, 254]));
    }
    await waitUntil(() => events.includes("malformed-message"), "the message is counted");
    await locks.withLock(newKey(), () => undefined);
  });

  test("reports a request without a reply as unknown, and the lease as lost", async () => {
    const server = await ownServer();
    const locks = open(await glide([server.port]), { commandTimeoutMs });
    await warmUp(locks);
    const lease = await locks.acquire(newKey(), { ttlMs: 1_500 });
    server.freeze();
    onCleanup(() => server.thaw());
    const { error } = await rejection(locks.tryAcquire(newKey()));
    expect(error).toBeInstanceOf(EngineError);
    expect(error).toMatchObject({ outcome: "unknown", retryable: true });
    await abortOf(lease.signal);
    expect(reasonOf(lease.signal)).toBe("engine-unreachable");
    server.thaw();
    expect(await (await locks.acquire(newKey(), { waitMs: 60_000 })).release()).toBe(true);
  });

  test("follows a failover among the addresses of the client", async () => {
    const [former, next] = await Promise.all([ownServer(), ownServer()]);
    const nowhere = ["127.0.0.1", String(await stablePort())];
    const probe = next.client();
    await probe.call("REPLICAOF", nowhere);
    const locks = open(await glide([former.port, next.port]), { commandTimeoutMs });
    await warmUp(locks);
    await former.client().call("REPLICAOF", nowhere);
    await probe.call("REPLICAOF", "NO", "ONE");
    await waitUntil(
      async () => {
        const [node] = await locks.admin.nodes();
        return node?.role === "master" && node.notifications === "verified";
      },
      "the new primary is found",
      limitMs(30_000),
    );
    const key = newKey();
    const lease = await locks.acquire(key);
    expect(await probe.exists(`lock:${key}`)).toBe(1);
    expect(await lease.release()).toBe(true);
  });

  test("connects when its server is there again, without the connections of failed attempts", async () => {
    const port = await stablePort();
    const client = await glide([port], { lazyConnect: true });
    const locks = open(client, { commandTimeoutMs: 200 });
    for (let attempts = 0; attempts < 5; attempts++) {
      const { error } = await rejection(locks.tryAcquire(newKey()));
      expect(error).toMatchObject({ code: "engine-unavailable", retryable: true });
    }
    const server = await ownServer({ port });
    await warmUp(locks);
    expect(await connectionsOf(server)).toBe(2);
  });

  test("is closed with the client of the user", async () => {
    const client = await glide([shared.port]);
    const locks = open(client, { commandTimeoutMs });
    await warmUp(locks);
    client.close();
    const { error } = await rejection(locks.tryAcquire(newKey()));
    expect(error).toMatchObject({ code: "engine-unavailable", outcome: "none" });
    expect(String(error)).toContain("The client is closed");
  });

  test("is refused with a configuration that leads elsewhere", async () => {
    const nameless = await glide([shared.port], {
      lazyConnect: true,
      credentials: { username: "worker", password: "" },
    });
    expect(() => redis(nameless)).toThrow("a password beside its username");
    const reading = await glide([shared.port], { lazyConnect: true, readOnly: true });
    expect(() => redis(reading)).toThrow("got one with `readOnly`");
    const addresses = [{ host: "127.0.0.1", port: shared.port }];
    const cluster = await GlideClusterClient.createClient({ addresses, lazyConnect: true });
    onCleanup(() => cluster.close());
    expect(() => redis(cluster)).toThrow("The cluster client of Valkey GLIDE is not supported");
  });
});

/** The events of nodes, as they come. */
function nodeEvents(): string[] {
  const events: string[] = [];
  const listen = (message: unknown): void => void events.push((message as { event: string }).event);
  subscribe("holdfast:node", listen);
  onCleanup(() => void unsubscribe("holdfast:node", listen));
  return events;
}

/** How many connections beside the own one the server has. */
async function connectionsOf(server: RedisServer): Promise<number> {
  const list = String(await server.client().client("LIST"));
  return list.trim().split("\n").length - 1;
}
