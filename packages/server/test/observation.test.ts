import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { createLocks, type Locks } from "holdfast";
import { redis } from "holdfast/redis";
import { http } from "holdfast/http";
import { memory } from "holdfast/memory";
import { startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { consoleRoutes, createService, newToken, type Service } from "../src/index.ts";
import { holdInProcess } from "./support/holder-process.ts";
import { acquire, sendRequest } from "./support/service.ts";

interface Reply {
  readonly owners: readonly OwnerReply[];
  readonly processes: readonly OwnerReply[];
  readonly holds: readonly Record<string, unknown>[];
  readonly keys: readonly Record<string, unknown>[];
  readonly knownSince: number;
  readonly asOf: number;
  readonly lostLastHour: number;
}

interface OwnerReply {
  readonly owner: string;
  readonly answered: boolean;
  readonly holdCount: number;
  readonly holds: readonly Record<string, unknown>[];
  readonly waits: readonly Record<string, unknown>[];
}

const [reader, all] = [newToken(), newToken()];
let server: RedisServer;
let service: Service;
let url: string;
let worker: Locks;

beforeAll(async () => {
  server = await startRedis();
  service = await createService({
    engine: `redis://127.0.0.1:${server.port}`,
    auth: {
      tokens: [
        { name: "reader", sha256: reader.sha256, grants: [{ scope: "lock:read", prefix: "order:" }] },
        {
          name: "all",
          sha256: all.sha256,
          grants: (["lock:read", "lock:acquire", "lock:force"] as const).map((scope) => ({
            scope,
            prefix: "",
          })),
        },
      ],
    },
  });
  url = await service.listen({ port: 0 });
  worker = createLocks(redis(server.client()), { owner: "worker@pod:1" });
});

afterAll(async () => {
  await worker.close();
  await service.close();
  await server.stop();
});

function get(path: string, token = all.token): Promise<{ status: number; body: Reply }> {
  const headers = { authorization: `Bearer ${token}` };
  return sendRequest(url, "GET", path, undefined, headers) as Promise<{ status: number; body: Reply }>;
}

test("the owners are the processes and the other holders, within the prefixes of the client", async () => {
  await worker.acquire("order:1", { reason: "charge" });
  await worker.acquire("secret:1");
  const waiting = [1, 2].map(() => worker.acquire("order:1", { waitMs: 60_000 }).catch(() => undefined));
  const headers = { authorization: `Bearer ${all.token}` };
  await sendRequest(
    url,
    "POST",
    "/v1/leases",
    { key: "order:2", owner: "script@ci", ttlMs: 600_000 },
    headers,
  );

  const find = ({ body }: { body: Reply }, owner: string): OwnerReply | undefined =>
    body.owners.find((one) => one.owner === owner);
  await waitUntil(
    async () => find(await get("/v1/owners"), "worker@pod:1")?.answered === true,
    "the worker answers",
  );
  await waitUntil(
    async () => find(await get("/v1/owners"), "script@ci") !== undefined,
    "the list has the client",
  );
  const list = await get("/v1/owners");
  expect(find(list, "script@ci")).toMatchObject({ answered: false, holds: [{ key: "order:2" }] });
  const own = find(list, "worker@pod:1");
  expect(own?.holds.map(({ key }) => key).sort()).toEqual(["order:1", "secret:1"]);
  expect(own?.holds.find(({ key }) => key === "order:1")).toMatchObject({
    reason: "charge",
    localWaiters: 2,
  });
  expect(own?.waits).toMatchObject([{ key: "order:1", kind: "mutex", count: 2 }]);

  const worked = new AbortController();
  const work = (async () => {
    while (!worked.signal.aborted) await (await worker.acquire("order:8")).release();
  })();
  const foreign = { key: "order:9", owner: "worker@pod:1", ttlMs: 600_000 };
  await sendRequest(url, "POST", "/v1/leases", foreign, headers);
  const rowsOfWorker = async (): Promise<OwnerReply[]> =>
    (await get("/v1/owners")).body.owners.filter(({ owner }) => owner === "worker@pod:1");
  await waitUntil(
    async () => (await rowsOfWorker()).length > 1,
    "the other holder of the same name has a row",
  );
  worked.abort();
  await work;
  const [row, other, ...more] = await rowsOfWorker();
  expect([row?.answered, other?.answered, more]).toEqual([true, false, []]);
  expect(other?.holds.map(({ key }) => key)).toEqual(["order:9"]);

  const limited = await get("/v1/owners", reader.token);
  expect(JSON.stringify(limited.body)).not.toContain("secret");
  expect(find(limited, "worker@pod:1")).toMatchObject({ holdCount: 1, holds: [{ key: "order:1" }] });

  const engine = `redis://127.0.0.1:${server.port}`;
  const frozen = await holdInProcess(engine, { owner: "secret@pod:3", ttlMs: 600_000, keys: ["secret:3"] });
  await waitUntil(
    async () => (await get("/v1/processes")).body.processes.some(({ owner }) => owner === "secret@pod:3"),
    "the process is registered",
  );
  frozen.kill("SIGSTOP");
  onTestFinished(() => void frozen.kill("SIGKILL"));
  const owners = async (token: string): Promise<string[]> =>
    (await get("/v1/processes?key=order:1", token)).body.processes.map(({ owner }) => owner);
  expect(await owners(reader.token)).toEqual(["worker@pod:1"]);
  expect(await owners(all.token)).toEqual(["worker@pod:1", "secret@pod:3"]);
  expect((await get("/v1/processes?key=secret:1", reader.token)).status).toBe(403);
  expect((await get("/v1/processes", reader.token)).status).toBe(403);

  const client = createLocks(http(url, { token: all.token }));
  const { processes, scope } = await client.admin.processes({ key: "order:1" });
  expect(scope).toBe("engine");
  expect(processes[0]?.holds[0]?.fencingToken).toBeTypeOf("bigint");
  await client.close();
  await worker.close();
  await Promise.all(waiting);
});

test("the history of all keys has the ends that the client may read, and a renewed hold is never lost", async () => {
  expect((await get("/v1/history")).body).toMatchObject({ lostLastHour: 0 });
  const client = createLocks(redis(server.client()), { owner: "losing@pod:4" });
  const renewed = await client.acquire("order:6", { ttlMs: 8_000 });
  const lost = [];
  for (const key of ["order:7", "secret:7"]) {
    lost.push(await client.acquire(key, { ttlMs: 9_000 }));
  }
  lost.forEach((lease) => lease.orphan());
  const history = async (query: string, token?: string): Promise<Reply> =>
    (await get(`/v1/history${query}`, token)).body;
  await waitUntil(async () => (await history("")).lostLastHour === 2, "both are lost", 45_000);
  await renewed.release(); // held longer than its TTL, which the watch does not see
  await waitUntil(
    async () => (await history("?key=order:6")).holds[0]?.["until"] !== null,
    "the end is seen",
  );
  expect(await history("?key=order:6")).toMatchObject({ lostLastHour: 0, holds: [{ end: "released" }] });
  expect(await history("?key=order:7")).toMatchObject({ lostLastHour: 1, holds: [{ end: "expired" }] });
  const limited = await history("", reader.token);
  expect(limited.lostLastHour).toBe(1);
  const ends = limited.holds.map(({ key, end }) => [key, end]);
  expect(ends.slice(0, 2)).toEqual([["order:6", "released"], ["order:7", "expired"]]); // prettier-ignore
  expect(JSON.stringify(limited)).not.toContain("secret");
  expect(Number(limited.holds[1]?.["until"]) - Number(limited.holds[1]?.["since"])).toBeGreaterThan(5_000);
  await client.close();
}, 60_000);

test("the history has the ends of holds, and contention has the waiters", async () => {
  const headers = { authorization: `Bearer ${all.token}` };
  expect((await get("/v1/history?key=order:3")).body).toMatchObject({ holds: [] });
  const asWorker = createLocks(redis(server.client()), { owner: "other@pod:2" });
  const lease = await asWorker.acquire("order:3", { reason: "first" });
  const waiter = createLocks(redis(server.client()), { owner: "waiter@pod:3" });
  const next = waiter.acquire("order:3", { waitMs: 60_000 });
  const history = async (): Promise<readonly Record<string, unknown>[]> =>
    (await get("/v1/history?key=order:3", reader.token)).body.holds;
  await waitUntil(
    async () => (await get("/v1/contention")).body.keys.some(({ key }) => key === "order:3"),
    "the waiter is seen",
  );
  await lease.release();
  const second = await next;
  await waitUntil(async () => (await history()).length === 2, "the end is seen");
  const [present, past] = await history();
  expect(present).toMatchObject({ owner: "waiter@pod:3", until: null });
  expect(past).toMatchObject({
    owner: "other@pod:2",
    reason: "first",
    end: "released",
    fencingToken: lease.fencingToken.toString(),
  });
  const broken = { key: "order:3", fencingToken: second.fencingToken.toString(), reason: "test" };
  await sendRequest(url, "POST", "/v1/lock/break", broken, headers);
  await waitUntil(async () => (await history())[0]?.["end"] === "broken", "the break is seen");
  const { keys, knownSince, asOf } = (await get("/v1/contention", reader.token)).body;
  expect(knownSince).toBeGreaterThan(Date.now() - 600_000);
  expect([asOf >= knownSince, asOf <= Date.now()]).toEqual([true, true]);
  expect(keys.map(({ key }) => key)).toContain("order:3");
  expect((await get("/v1/history?key=secret:1", reader.token)).status).toBe(403);
  await Promise.all([asWorker.close(), waiter.close()]);
});

test("the times of earlier holds are known from five releases on", async () => {
  const driver = memory();
  const owner = createLocks(driver, { owner: "often@pod:4" });
  const routes = consoleRoutes(driver, { anonymous: "read" });
  const api = createServer(routes.handler).listen(0, "127.0.0.1");
  await once(api, "listening");
  const address = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
  const read = async (path: string): Promise<Reply> =>
    (await sendRequest(address, "GET", `/v1/${path}`)).body as Reply;
  const newest = async (key: string): Promise<Record<string, unknown> | undefined> =>
    (await read(`history?key=${key}`)).holds[0];
  expect(await read("hold-times")).toMatchObject({ keys: [] });
  for (const [key, holds] of Object.entries({ "order:few": 4, "order:often": 5 })) {
    for (let rest = holds; rest > 0; rest -= 1) {
      const lease = await owner.acquire(key);
      await waitUntil(async () => (await newest(key))?.["until"] === null, "the hold is seen");
      await lease.release();
      await waitUntil(async () => (await newest(key))?.["end"] === "released", "the release is seen");
    }
  }
  expect((await read("hold-times")).keys).toEqual([
    {
      key: "order:often",
      count: 5,
      p50Ms: expect.any(Number) as number,
      p95Ms: expect.any(Number) as number,
    },
  ]);
  await Promise.all([owner.close(), routes.close()]);
  api.close();
});

test("a service in memory reports itself only", async () => {
  const alone = await createService({ engine: "memory:" });
  const address = await alone.listen({ port: 0 });
  await acquire(address, { key: "k", owner: "someone" });
  const { body } = await sendRequest(address, "GET", "/v1/owners");
  expect((body as Reply).owners).toContainEqual(
    expect.objectContaining({ owner: "someone", answered: false }),
  );
  await alone.close();
});
