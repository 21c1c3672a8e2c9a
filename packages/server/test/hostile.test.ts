import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";

import { afterAll, beforeAll, expect, test } from "vitest";
import { waitUntil } from "@holdfast/test-kit";

import { createService, type LogEntry, type Service } from "../src/index.ts";
import { acquire, sendRequest, inspect, openStream, startInstance } from "./support/service.ts";

let service: Service;
let url: string;
const log: LogEntry[] = [];

beforeAll(async () => {
  service = await createService({ log: (entry) => log.push(entry) });
  url = await service.listen({ port: 0 });
});

afterAll(async () => {
  await service.close();
  expect(log.filter(({ level }) => level === "error")).toEqual([]);
});

/** Expects that hostile clients do not disturb a well-behaved client. */
async function othersAreServed(): Promise<void> {
  const { leaseId } = await acquire(url, { key: "of another client" });
  expect(await sendRequest(url, "DELETE", `/v1/leases/${leaseId}`)).toMatchObject({
    body: { released: true },
  });
}

async function dial(at = url): Promise<{ socket: Socket; said: () => string; ended: Promise<unknown> }> {
  const { hostname, port } = new URL(at);
  const socket = connect(Number(port), hostname);
  let said = "";
  socket.on("error", () => undefined);
  socket.setEncoding("utf8").on("data", (text: string) => (said += text));
  const ended = once(socket, "close");
  await once(socket, "connect");
  return { socket, said: () => said, ended };
}

/** The resident memory of a process on Linux. On other systems 0, so no growth is measured. */
function rssMbOf(pid: number | undefined): number {
  if (process.platform !== "linux") {
    return 0;
  }
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

const json = "Host: localhost\r\nContent-Type: application/json\r\n";

test("a body that is too long is refused, with or without a `Content-Length`", async () => {
  const long = await dial();
  long.socket.write(`POST /v1/leases HTTP/1.1\r\n${json}Content-Length: 300000000\r\n\r\n{"key":"k"`);
  await waitUntil(() => long.said().includes("413"), "it is refused by its length");
  expect(long.said()).toContain('"code":"invalid"');
  long.socket.destroy();
  const { socket, said } = await dial();
  socket.write(`POST /v1/leases HTTP/1.1\r\n${json}Transfer-Encoding: chunked\r\n\r\n`);
  const chunk = `10000\r\n${"x".repeat(65_536)}\r\n`;
  for (let i = 0; i < 8; i += 1) {
    socket.write(chunk);
  }
  await waitUntil(() => said().includes("413"), "it is refused before its end");
  socket.destroy();
  await othersAreServed();
});

test("a body that is not JSON, or not declared as JSON, is refused", async () => {
  for (const [body, type] of [
    ['{"key":', "application/json"],
    ["\u0000", "application/json"],
    [`${"[".repeat(100_000)}`, "application/json"],
    ['{"key":"k"}', "text/plain"],
    ['{"key":"k"}', "application/x-www-form-urlencoded"],
    ['{"__proto__":{"key":"k"}}', "application/json"],
    ["null", "application/json"],
  ] as const) {
    const response = await fetch(new URL("/v1/leases", url), {
      method: "POST",
      body,
      headers: { "content-type": type },
    });
    expect(response.status, `${body.slice(0, 20)} ${type}`).toBe(type === "application/json" ? 400 : 415);
    expect(await response.json()).toMatchObject({ code: "invalid", outcome: "none" });
  }
  expect((await inspect(url, "k")).holders).toEqual([]);
  await othersAreServed();
});

test("a key of a megabyte is refused in every place of a request", async () => {
  const key = "k".repeat(200_000);
  expect(await sendRequest(url, "POST", "/v1/leases", { key })).toMatchObject({
    status: 400,
    body: { code: "invalid-key" },
  });
  const { socket, said, ended } = await dial();
  socket.write(`GET /v1/lock?key=${"k".repeat(1_000_000)} HTTP/1.1\r\n${json}\r\n`);
  await ended;
  expect(said()).toMatch(/^HTTP\/1\.1 431/);
  expect(said()).toContain('"code":"invalid"');
  await othersAreServed();
});

test("a flood of headers ends its own connection only", async () => {
  const floods = await Promise.all(Array.from({ length: 50 }, () => dial()));
  for (const { socket } of floods) {
    socket.write(
      `GET /healthz HTTP/1.1\r\n${json}${Array.from({ length: 3_000 }, (_, i) => `X-${i}: ${i}\r\n`).join("")}`,
    );
  }
  await Promise.all(floods.map(({ ended }) => ended));
  expect(floods.every(({ said }) => said().startsWith("HTTP/1.1 431"))).toBe(true);
  await othersAreServed();
});

test("a request that is not HTTP gets a problem, and its connection closes", async () => {
  const { socket, said, ended } = await dial();
  socket.write("SSH-2.0-OpenSSH_9.6\r\n\r\n");
  await ended;
  expect(said()).toMatch(/^HTTP\/1\.1 400/);
  await othersAreServed();
});

test("bodies that arrive byte by byte delay no other client, and are ended", async () => {
  const slow = await Promise.all(Array.from({ length: 100 }, () => dial()));
  for (const { socket } of slow) {
    socket.write(`POST /v1/leases HTTP/1.1\r\n${json}Content-Length: 1000\r\n\r\n{`);
  }
  await othersAreServed();
  await Promise.all(slow.map(({ ended }) => ended)); // by the service: requestTimeout
  expect(slow.every(({ said }) => said().startsWith("HTTP/1.1 408"))).toBe(true);
}, 60_000);

test("event streams without a reader cost bounded buffers, and other streams get all events", async () => {
  const instance = await startInstance();
  const deaf = await Promise.all(Array.from({ length: 20 }, () => dial(instance.url)));
  for (const { socket } of deaf) {
    socket.write(`GET /v1/events?prefix=flood: HTTP/1.1\r\n${json}Accept: text/event-stream\r\n\r\n`);
    await once(socket, "data");
    socket.pause();
  }
  const reader = await openStream(instance.url, "GET", "/v1/events?prefix=flood:last");
  const labels = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`l${i}`, "x".repeat(250)]));
  const rounds = async (count: number): Promise<number> => {
    for (let round = 0; round < count; round += 1) {
      const keys = Array.from({ length: 10 }, (_, i) => `flood:${i}`);
      const { leaseId } = await acquire(instance.url, { keys, labels });
      await sendRequest(instance.url, "DELETE", `/v1/leases/${leaseId}`);
    }
    return rssMbOf(instance.child.pid);
  };
  const before = await rounds(30); // until its code, and the buffers of the connections, have the size that they need
  const after = await rounds(120);
  await acquire(instance.url, { key: "flood:last" });
  expect(await reader.next()).toMatchObject({ event: "changed", data: { key: "flood:last" } });
  expect(after - before).toBeLessThan(80); // unread, the events of these rounds are more than 160 MB
  for (const { socket } of deaf) {
    socket.destroy();
  }
  reader.disconnect();
  await instance.kill("SIGKILL");
}, 60_000);

test("a request over the limits of TTL or keys is refused", async () => {
  for (const body of [
    { key: "k", ttlMs: 1e12 },
    { key: "k", waitMs: 1e12 },
    { key: "k", waitMs: -1 },
    { keys: Array.from({ length: 33 }, (_, i) => `k${i}`) },
    { keys: [] },
    { key: "k", labels: Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`l${i}`, "x"])) },
  ]) {
    expect(
      await sendRequest(url, "POST", "/v1/leases", body),
      JSON.stringify(body).slice(0, 60),
    ).toMatchObject({
      status: 400,
    });
  }
});
