import { setTimeout as pause } from "node:timers/promises";

import { createLocks, EngineError, type Lease, type Locks } from "holdfast";
import { redis, type Connection, type RedisClient } from "holdfast/redis";
import { createClient } from "redis";
import { expect, test } from "vitest";
import { rejection, waitUntil, type RedisServer } from "@holdfast/test-kit";

import { detectConnection } from "../../../src/drivers/redis/clients/detect.ts";
import {
  onCleanup,
  connect,
  newKey,
  onSharedRedis,
  ownServer,
  slackMs,
  warmUp,
} from "../../support/fault-fixture.ts";
import { commandText } from "../../support/diagnostics-log.ts";

const operations = new Set(["extend", "release", "acquire"]);
const commandTimeoutMs = 500;
const callers = 300;
const askedEachMs = 125;
/**
 * How many calls the client library may keep: eight batches, the operations during a call, three commands each,
 * and probes.
 */
const mostKept = 8 + (3 * commandTimeoutMs) / askedEachMs + 16;

const clients: Readonly<Record<string, (port: number) => Promise<RedisClient>>> = {
  "ioredis that keeps every command": async (port) => connect(port, { maxRetriesPerRequest: null }),
  "ioredis with its defaults": async (port) => connect(port),
  "node-redis with its defaults": async (port) => {
    const client = createClient({ url: `redis://127.0.0.1:${port}` }).on("error", () => undefined);
    await client.connect();
    onCleanup(() => {
      client.destroy();
    });
    return client;
  },
};

const outages: Readonly<Record<string, (server: RedisServer) => Promise<() => Promise<void>>>> = {
  frozen: async (server) => {
    server.freeze();
    return async () => {
      server.thaw();
    };
  },
  killed: async (server) => {
    server.kill("SIGKILL");
    await server.stop();
    return async () => {
      await ownServer({ port: server.port });
    };
  },
};

const rows = Object.keys(outages).flatMap((how) =>
  Object.keys(clients).map((client) => [how, client] as const),
);

onSharedRedis("an unresponsive server", () => {
  test.each(rows)("%s: %s keeps few calls, and all callers are served when it is back", async (how, name) => {
    const server = await ownServer();
    const client = await (clients[name] as (typeof clients)[string])(server.port);
    const { connection, heldBack } = counting(detectConnection(client));
    const locks = open(connection);
    await warmUp(locks);
    const lease = await locks.acquire(newKey(), { ttlMs: 60_000 });
    const bring = await (outages[how] as (typeof outages)[string])(server);

    const waiting = Array.from({ length: callers }, () => locks.acquire(newKey(), { waitMs: 60_000 }));
    for (const call of waiting) {
      call.catch(() => undefined);
    }
    const repeating = repeatUnbatched(locks);
    const { error, afterMs } = await rejection(locks.tryAcquire(newKey()));
    expect(error).toBeInstanceOf(EngineError);
    expect(error).toMatchObject({ code: "engine-unavailable", retryable: true });
    expect(afterMs).toBeLessThan(commandTimeoutMs + slackMs);
    const releasing = rejection(lease.release());
    await pause(3_000);
    expect(heldBack()).toBeLessThanOrEqual(mostKept);
    expect((await releasing).error).toMatchObject({ code: "engine-unavailable" });
    repeating.end();

    await bring();
    const begun = performance.now();
    const leases = await Promise.all(waiting);
    expect(performance.now() - begun).toBeLessThan(4_000); // a client library reconnects after up to 2 s
    await Promise.all(leases.map((each) => each.release().catch(() => undefined))); // a late release continues
    await waitUntil(() => heldBack() === 0, "no call is kept");
  });

  test("gets renewals first when it is back, then releases, then new requests", async () => {
    const server = await ownServer();
    const { connection, sent } = counting(detectConnection(server.client()));
    const locks = open(connection);
    await warmUp(locks);
    const acquireMany = (count: number): Promise<Lease[]> =>
      Promise.all(Array.from({ length: count }, () => locks.acquire(newKey(), { ttlMs: 6_000 })));
    const kept = await acquireMany(20);
    const done = await acquireMany(20);
    await pause(1_000);
    server.freeze();
    await rejection(locks.inspect(newKey()));
    const waiting = Array.from({ length: 20 }, () => locks.acquire(newKey(), { waitMs: 60_000 }));
    const releasing = done.map((lease) => rejection(lease.release()));
    await pause(1_000); // renewals have become due 2 s after the grants, and were refused
    sent.length = 0;
    server.thaw();
    await waitUntil(() => kept.every((lease) => lease.remainingMs() > 5_000), "renewed");
    const leases = await Promise.all(waiting);
    const first = sent.slice(0, sent.lastIndexOf("acquire") + 1);
    const rank = ["extend", "release", "acquire"];
    expect(first).toEqual(first.toSorted((one, other) => rank.indexOf(one) - rank.indexOf(other)));
    expect(first.filter((name) => name === "extend").length).toBeGreaterThan(10); // by chance some are due later
    expect(first.length).toBeGreaterThan(50);
    await Promise.all(releasing);
    await Promise.all([...kept, ...leases].map((lease) => lease.release()));
  });

  test("confirms a grant by notification, although it sends no replies", async () => {
    const server = await ownServer();
    const { connection, sent, hang } = counting(detectConnection(server.client()));
    const locks = open(connection);
    const holder = createLocks(redis(server.client()));
    onCleanup(() => holder.close());
    await warmUp(locks);
    const key = newKey();
    const held = await holder.acquire(key);
    const waiting = locks.acquire(key, { waitMs: 60_000 });
    await waitUntil(async () => (await holder.inspect(key)).waiterCount === 1, "the waiter is queued");
    const goOn = hang();
    await rejection(locks.tryAcquire(newKey()));
    sent.length = 0;
    await held.release();
    const lease = await waiting;
    await waitUntil(() => sent.includes("extend"), "the grant is confirmed", 150);
    goOn();
    expect(await lease.release()).toBe(true);
  });
});

function open(client: RedisClient): Locks {
  const locks = createLocks(redis(client, { commandTimeoutMs }), { closeTimeoutMs: 1_000 });
  onCleanup(() => locks.close());
  return locks;
}

interface CountingConnection {
  readonly connection: Connection;
  /** How many calls are not settled. The client library keeps each of them. */
  heldBack(): number;
  /** The operations of all batches, in order. */
  readonly sent: string[];
  /** Delivers no calls until the returned function is called. */
  hang(): () => void;
}

function counting(inner: Connection): CountingConnection {
  let kept = 0;
  let isHanging = false;
  const sent: string[] = [];
  const counted = <T>(send: () => Promise<T>): Promise<T> => {
    kept += 1;
    const call = isHanging ? new Promise<T>(() => undefined) : send();
    return call.finally(() => {
      kept -= 1;
    });
  };
  const connection: Connection = {
    keyPrefix: inner.keyPrefix,
    name: inner.name,
    hasPlainChannelsOnly: inner.hasPlainChannelsOnly === true,
    run: (script, keys, args) => {
      sent.push(...commandText(args).filter((word) => operations.has(word)));
      return counted(() => inner.run(script, keys, args));
    },
    command: (name, args) => counted(() => inner.command(name, args)),
    subscribe: (channel, kind, listener) => inner.subscribe(channel, kind, listener),
    onDown: (listener) => inner.onDown(listener),
    close: () => inner.close?.(),
  };
  const hang = (): (() => void) => {
    isHanging = true;
    return () => {
      isHanging = false;
    };
  };
  return { connection, heldBack: () => kept, sent, hang };
}

/** Repeats a request that is not batched. */
function repeatUnbatched(locks: Locks): { end(): void } {
  const timer = setInterval(() => {
    locks.admin.nodes().catch(() => undefined);
    locks.inspect("any").catch(() => undefined);
    locks.admin.list().catch(() => undefined);
  }, askedEachMs);
  const end = (): void => {
    clearInterval(timer);
  };
  onCleanup(end);
  return { end };
}
