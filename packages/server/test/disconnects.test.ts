import { once } from "node:events";
import { connect, type Socket } from "node:net";

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startProxy, startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";

import { createService, type LogEntry, type Service } from "../src/index.ts";
import { acquire, sendRequest, inspect, openStream } from "./support/service.ts";

let redis: RedisServer;
const services: Service[] = [];
const urls: Record<string, string> = {};
const log: LogEntry[] = [];

beforeAll(async () => {
  redis = await startRedis();
  for (const [name, engine] of [
    ["memory", "memory:"],
    ["Redis", `redis://127.0.0.1:${redis.port}`],
  ] as const) {
    const service = await createService({ engine, log: (entry) => log.push(entry) });
    services.push(service);
    urls[name] = await service.listen({ port: 0 });
  }
});

afterAll(async () => {
  await Promise.all(services.map((service) => service.close()));
  await redis.stop();
  expect(log.filter(({ level }) => level === "error" || level === "warn")).toEqual([]);
});

describe.each(["memory", "Redis"])("a client that disconnects, on %s,", (name) => {
  const urlOf = (): string => urls[name] as string;
  let count = 0;
  const newKey = (): string => `disconnected:${name}:${(count += 1)}`;

  test("in the middle of its request leaves nothing", async () => {
    const key = newKey();
    const body = JSON.stringify({ key, ttlMs: 60_000 });
    const socket = await dial(urlOf());
    socket.write(head("POST", "/v1/leases", body.length) + body.slice(0, -5));
    await waitUntil(() => socket.bytesWritten > 0, "it is sent");
    socket.destroy();
    await leavesNothing(urlOf(), key);
  });

  test("while it waits for the response leaves the queue", async () => {
    const key = newKey();
    const held = await acquire(urlOf(), { key, ttlMs: 60_000 });
    const socket = await dial(urlOf());
    send(socket, { key, waitMs: 60_000, ttlMs: 60_000 });
    await waitUntil(async () => (await inspect(urlOf(), key)).waiterCount === 1, "it waits");
    const next = acquire(urlOf(), { key, waitMs: 30_000 });
    await waitUntil(
      async () => (await inspect(urlOf(), key)).waiterCount === 2,
      "another request waits after it",
    );
    socket.destroy();
    await waitUntil(async () => (await inspect(urlOf(), key)).waiterCount === 1, "it has left");
    await sendRequest(urlOf(), "DELETE", `/v1/leases/${held.leaseId}`);
    const lease = await next;
    await sendRequest(urlOf(), "DELETE", `/v1/leases/${lease.leaseId}`);
    await leavesNothing(urlOf(), key);
  });

  test("while it follows the wait as a stream leaves the queue", async () => {
    const key = newKey();
    await acquire(urlOf(), { key, ttlMs: 60_000 });
    const stream = await openStream(urlOf(), "POST", "/v1/leases", { key, waitMs: 60_000 });
    expect(await stream.next()).toMatchObject({ event: "waiting" });
    await waitUntil(async () => (await inspect(urlOf(), key)).waiterCount === 1, "it waits");
    stream.disconnect();
    await waitUntil(async () => (await inspect(urlOf(), key)).waiterCount === 0, "it has left");
  });

  test("before its grant can be sent has that grant released at once", async () => {
    const key = newKey();
    const socket = await dial(urlOf());
    socket.pause();
    // Unread responses fill the connection, so the response of the acquire cannot be sent.
    const big = head("GET", "/openapi.json", 0).repeat(400);
    socket.write(big);
    send(socket, { key, ttlMs: 600_000 });
    await waitUntil(async () => (await inspect(urlOf(), key)).holders.length === 1, "it is granted");
    socket.destroy();
    await leavesNothing(urlOf(), key);
  });

  test("before the grant of a named attempt can be sent leaves nothing", async () => {
    const key = newKey();
    const socket = await dial(urlOf());
    socket.pause();
    socket.write(head("GET", "/openapi.json", 0).repeat(400));
    send(socket, { key, ttlMs: 600_000, attemptId: "one" });
    await waitUntil(async () => (await inspect(urlOf(), key)).holders.length === 1, "it is granted");
    socket.destroy();
    await leavesNothing(urlOf(), key);
  });

  test("before the grant of a named attempt that had a lease before can be sent leaves nothing", async () => {
    const key = newKey();
    const before = await acquire(urlOf(), { key, attemptId: "one" });
    await sendRequest(urlOf(), "DELETE", `/v1/leases/${before.leaseId}`);
    const socket = await dial(urlOf());
    socket.pause();
    socket.write(head("GET", "/openapi.json", 0).repeat(400));
    send(socket, { key, ttlMs: 600_000, attemptId: "one" });
    await waitUntil(async () => (await inspect(urlOf(), key)).holders.length === 1, "it is granted");
    socket.destroy();
    await leavesNothing(urlOf(), key);
  });

  test("while a repeat of its named attempt waits leaves the lease to the repeat", async () => {
    const key = newKey();
    const held = await acquire(urlOf(), { key, ttlMs: 60_000 });
    const socket = await dial(urlOf());
    send(socket, { key, ttlMs: 600_000, waitMs: 60_000, attemptId: "one" });
    await waitUntil(async () => (await inspect(urlOf(), key)).waiterCount === 1, "it waits");
    const repeat = acquire(urlOf(), { key, waitMs: 20_000, attemptId: "one" });
    socket.destroy();
    await sendRequest(urlOf(), "DELETE", `/v1/leases/${held.leaseId}`);
    const lease = await repeat;
    expect((await inspect(urlOf(), key)).fencingToken).toBe(lease.fencingToken);
    await sendRequest(urlOf(), "DELETE", `/v1/leases/${lease.leaseId}`);
    await leavesNothing(urlOf(), key);
  });

  test("at any moment around its grant never shares a lock with another client", async () => {
    const key = newKey();
    for (let round = 0; round < 20; round += 1) {
      const held = await acquire(urlOf(), { key, ttlMs: 60_000, waitMs: 20_000 });
      const socket = await dial(urlOf());
      send(socket, { key, waitMs: 60_000, ttlMs: 300 });
      await waitUntil(async () => (await inspect(urlOf(), key)).waiterCount === 1, "it waits");
      const released = sendRequest(urlOf(), "DELETE", `/v1/leases/${held.leaseId}`);
      for (let turn = 0; turn < round; turn += 1) {
        await new Promise(setImmediate);
      }
      socket.destroy();
      await released;
    }
    // A grant that was sent before the disconnection is held until its TTL has passed, and no longer.
    const last = await acquire(urlOf(), { key, waitMs: 20_000 });
    expect(await sendRequest(urlOf(), "DELETE", `/v1/leases/${last.leaseId}`)).toMatchObject({
      body: { released: true },
    });
  });
});

test("a grant that cannot be delivered while the engine is down is released when the engine is back", async () => {
  const proxy = await startProxy(redis.port);
  const engine = `redis://127.0.0.1:${proxy.port}?commandTimeoutMs=300`;
  const service = await createService({ engine });
  const url = await service.listen({ port: 0 });
  const client = redis.client();
  const isHeld = async (): Promise<boolean> => (await client.exists("lock:disconnected:away")) === 1;
  const socket = await dial(url);
  socket.pause();
  socket.write(head("GET", "/openapi.json", 0).repeat(400));
  send(socket, { key: "disconnected:away", ttlMs: 600_000 });
  await waitUntil(isHeld, "it is granted");
  proxy.refuse(true);
  proxy.cut();
  socket.destroy();
  // This acquire is requested, and abandoned, after the release.
  await waitUntil(
    async () => (await sendRequest(url, "GET", "/readyz")).status === 503,
    "the engine is away",
  );
  proxy.refuse(false);
  await waitUntil(async () => !(await isHeld()), "the grant is released");
  await service.close();
  await proxy.stop();
});

async function leavesNothing(url: string, key: string): Promise<void> {
  await waitUntil(async () => {
    const { holders, waiterCount } = await inspect(url, key);
    return holders.length === 0 && waiterCount === 0;
  }, "the lock has no holder and no waiter");
}

async function dial(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return socket;
}

function send(socket: Socket, body: object): void {
  const text = JSON.stringify(body);
  socket.write(head("POST", "/v1/leases", text.length) + text);
}

function head(method: string, path: string, length: number): string {
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
}
