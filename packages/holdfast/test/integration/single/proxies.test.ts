import { once } from "node:events";
import { connect as connectTo, createServer, type AddressInfo } from "node:net";

import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { Redis as Ioredis5 } from "ioredis5";
import { expect, test } from "vitest";
import { waitUntil } from "@holdfast/test-kit";

import { clientLibraries } from "../../support/clients.ts";
import { newKey, onCleanup, onSharedRedis, shared } from "../../support/fault-fixture.ts";

/** A proxy that, as twemproxy does, ends the connection of a client that sends a command that it does not know. */
async function strictProxy(unknown: RegExp): Promise<{ readonly port: number; readonly endedAt: number[] }> {
  const endedAt: number[] = [];
  const proxy = createServer((client) => {
    const server = connectTo(shared.port, "127.0.0.1");
    const end = (): void => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      socket.on("error", end);
      socket.on("close", end);
    }
    client.on("data", (bytes) => {
      if (unknown.test(bytes.toString("latin1"))) {
        endedAt.push(performance.now());
        end();
      } else {
        server.write(bytes);
      }
    });
    server.on("data", (bytes) => client.write(bytes));
  });
  await once(proxy.listen(0, "127.0.0.1"), "listening");
  onCleanup(() => void proxy.close());
  return { port: (proxy.address() as AddressInfo).port, endedAt };
}

onSharedRedis("through a proxy that ends a connection at SUBSCRIBE,", () => {
  /** Not Valkey GLIDE, whose core connects again a thousand times a second, whatever the driver does. It needs RESP 3, which such proxies lack. */
  const libraries = [
    "ioredis 6",
    "ioredis 5",
    "iovalkey",
    "node-redis 6",
    "node-redis 5",
    "node-redis 4",
  ] as const;

  test.each(libraries)("%s subscribes again with growing pauses, and locks work", async (library) => {
    const proxy = await strictProxy(/\r\nS?SUBSCRIBE\r\n/i);
    const client = await clientLibraries[library](proxy.port);
    onCleanup(() => client.close());
    const locks = createLocks(redis(client.client));
    onCleanup(() => locks.close());
    await locks.withLock(newKey(), () => undefined);
    const lastPauseMs = (): number => {
      const [last = 0, before = 0] = proxy.endedAt.slice(-2).reverse();
      return proxy.endedAt.length < 2 ? 0 : Math.max(last - before, performance.now() - last);
    };
    await waitUntil(() => lastPauseMs() > 400, "the pauses are long");
    expect(proxy.endedAt.length).toBeLessThan(40);
    const key = newKey();
    const held = await locks.acquire(key);
    const waiting = locks.acquire(key);
    await held.release();
    expect(await (await waiting).release()).toBe(true);
  });
});

onSharedRedis("through a proxy that ends a connection at INFO,", () => {
  test("`nodes` reports the server, and costs no connection", async () => {
    const proxy = await strictProxy(/^\*[12]\r\n\$4\r\nINFO\r\n/im);
    const client = new Ioredis5({ port: proxy.port, enableReadyCheck: false });
    onCleanup(() => client.disconnect());
    const locks = createLocks(redis(client));
    onCleanup(() => locks.close());
    await locks.withLock(newKey(), () => undefined);
    const endedBefore = proxy.endedAt.length;
    expect(await locks.admin.nodes()).toMatchObject([
      { reachable: true, role: "master", replication: { replicas: [] } },
    ]);
    expect(proxy.endedAt.length).toBe(endedBefore);
  });
});
