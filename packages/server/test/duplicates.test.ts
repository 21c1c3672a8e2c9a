import { setTimeout as sleep } from "node:timers/promises";

import type { WireLease } from "holdfast/http";
import { manualRandom } from "holdfast/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startProxy, startRedis, waitUntil, type Proxy, type RedisServer } from "@holdfast/test-kit";

import { createService, type Service } from "../src/index.ts";
import { acquire, sendRequest, inspect, refusal } from "./support/service.ts";

// A request may arrive twice, because a client or a proxy sends it again without a response.

let redis: RedisServer;
let proxy: Proxy;
const services: Service[] = [];
let urls: readonly [string, string];

beforeAll(async () => {
  redis = await startRedis();
  const start = async (): Promise<string> => {
    const service = await createService({ engine: `redis://127.0.0.1:${redis.port}` });
    services.push(service);
    return service.listen({ port: 0 });
  };
  urls = [await start(), await start()];
  proxy = await startProxy(Number(new URL(urls[0]).port));
});

afterAll(async () => {
  await proxy.stop();
  await Promise.all(services.map((service) => service.close()));
  await redis.stop();
});

let count = 0;
const newKey = (): string => `twice:${(count += 1)}`;

async function released(url: string, { leaseId }: WireLease): Promise<boolean> {
  const { body } = await sendRequest(url, "DELETE", `/v1/leases/${leaseId}`);
  return (body as { released: boolean }).released;
}

async function isFree(key: string): Promise<boolean> {
  const { holders, waiterCount } = await inspect(urls[0], key);
  return holders.length === 0 && waiterCount === 0;
}

describe("an acquire", () => {
  test("of a named attempt that arrives twice at once gets one lease, and one release ends that lease", async () => {
    const key = newKey();
    const body = { key, attemptId: "one", waitMs: 20_000 };
    const [one, two] = await Promise.all([acquire(urls[0], body), acquire(urls[0], body)]);
    expect(two.leaseId).toBe(one.leaseId);
    expect(await released(urls[0], one)).toBe(true);
    expect(await isFree(key)).toBe(true);
  });

  test.each([
    ["without a name, to one instance", undefined, 0],
    ["without a name, to two instances", undefined, 1],
    ["of a named attempt, to two instances", "one", 1],
  ] as const)("%s, that comes twice at once is granted once", async (_, attemptId, other) => {
    const key = newKey();
    const body = { key, ttlMs: 60_000, waitMs: 0, ...(attemptId && { attemptId }) };
    const responses = await Promise.all(
      [urls[0], urls[other]].map((url) => sendRequest(url, "POST", "/v1/leases", body)),
    );
    expect(responses.map(({ status }) => status).sort((a, b) => a - b)).toEqual([201, 423]);
    const granted = responses.find(({ status }) => status === 201)?.body as WireLease;
    expect((await inspect(urls[0], key)).holders).toMatchObject([{ fencingToken: granted.fencingToken }]);
    expect(await released(urls[1], granted)).toBe(true);
    expect(await isFree(key)).toBe(true);
  });

  test("with a lost response gets the same lease when it is repeated by its name", async () => {
    const key = newKey();
    const body = { key, ttlMs: 60_000, attemptId: "one" };
    const lost = proxy.loseNextReply(/POST \/v1\/leases/);
    await expect(acquire(`http://127.0.0.1:${proxy.port}`, body)).rejects.toThrow();
    await lost;
    const [{ fencingToken } = { fencingToken: "" }] = (await inspect(urls[0], key)).holders;
    const lease = await acquire(urls[0], body);
    expect(lease.fencingToken).toBe(fencingToken);
    expect(await released(urls[0], lease)).toBe(true);
    expect(await isFree(key)).toBe(true);
  });

  test.each([["one key"], ["two keys"]])(
    "of %s that comes after the release ends with its TTL",
    async (kind) => {
      const keys = kind === "one key" ? [newKey()] : [newKey(), newKey()];
      const body = { keys, ttlMs: 400, attemptId: "one" };
      const lease = await acquire(urls[0], body);
      expect(await released(urls[0], lease)).toBe(true);
      const late = await acquire(urls[0], body);
      expect(BigInt(late.fencingToken)).toBeGreaterThan(BigInt(lease.fencingToken));
      expect(await released(urls[0], lease)).toBe(false);
      for (const key of keys) {
        const next = await acquire(urls[1], { key, waitMs: 20_000 });
        expect(BigInt(next.fencingToken)).toBeGreaterThan(BigInt(late.fencingTokens[key] as string));
      }
    },
  );
});

describe("of an ended lease", () => {
  test.each([
    ["the same instance", 0],
    ["another instance", 1],
  ] as const)(
    "a release or a renewal that comes again, at %s, leaves the next holders alone",
    async (_, at) => {
      const key = newKey();
      const granted: WireLease[] = [];
      const take = async (): Promise<void> => {
        granted.push(await acquire(urls[0], { key, ttlMs: 60_000, waitMs: 20_000 }));
      };
      await take();
      const waits = [take(), take(), take()];
      await waitUntil(async () => (await inspect(urls[0], key)).waiterCount > 0, "they wait");
      for (let turn = 0; turn < waits.length; turn += 1) {
        const over = granted[turn] as WireLease;
        expect(await Promise.all([0, at].map((one) => released(urls[one] as string, over)))).toContain(true);
        await waitUntil(() => granted.length === turn + 2, "the next one has it");
        const renewal = await refusal(urls[at], "POST", `/v1/leases/${over.leaseId}/renew`, {});
        expect(renewal.code).toBe("lease-lost");
        expect(await released(urls[at], over)).toBe(false);
        const { fencingToken } = granted[turn + 1] as WireLease;
        expect((await inspect(urls[1], key)).holders).toMatchObject([{ fencingToken }]);
      }
      expect(await released(urls[0], granted[waits.length] as WireLease)).toBe(true);
      expect(await isFree(key)).toBe(true);
    },
  );
});

interface ReportedGrant {
  readonly status: number;
  readonly body: unknown;
  /** The sending of the request, on the scale of `performance.now()`. */
  readonly sent: number;
}

test("clients with duplicated requests, at once, late or at another instance, never hold a key together", async () => {
  const key = newKey();
  const ttlMs = 250;
  const { nextFloat } = manualRandom(41);
  const below = (limit: number): number => Math.floor(nextFloat() * limit);
  const late: Promise<ReportedGrant>[] = [];

  /** Sends a request once or twice; the client knows one of the answers. */
  const send = async (method: string, path: string, body?: object): Promise<ReportedGrant> => {
    const at = below(2);
    const once = async (other = false): Promise<ReportedGrant> => {
      const sent = performance.now();
      return { ...(await sendRequest(urls[other ? 1 - at : at] as string, method, path, body)), sent };
    };
    const isOther = nextFloat() < 0.5;
    switch (below(4)) {
      case 0:
        return once();
      case 1: {
        const answers = await Promise.all([once(), once(isOther)]);
        return answers[below(2)] as ReportedGrant;
      }
      case 2:
        await once(); // its answer is lost
        return once(isOther);
      default: {
        const pause = sleep(below(2 * ttlMs));
        late.push(pause.then(() => once(isOther)));
        return once();
      }
    }
  };

  let holder: { until: number } | undefined;
  let highest = 0n;
  let holds = 0;
  const hold = async (lease: WireLease, sent: number): Promise<void> => {
    const mine = { until: sent + lease.queuedMs + lease.validMs };
    const now = performance.now();
    if (mine.until <= now) {
      return; // the response arrived too late
    }
    expect(holder === undefined || holder.until <= now).toBe(true);
    expect(BigInt(lease.fencingToken)).toBeGreaterThanOrEqual(highest); // the same: a repeat of what was not released
    highest = BigInt(lease.fencingToken);
    holder = mine;
    holds += 1;
    await sleep(below(20));
    if (nextFloat() < 0.4) {
      const renewed = await send("POST", `/v1/leases/${lease.leaseId}/renew`, {});
      if (renewed.status === 200 && holder === mine) {
        mine.until = Math.max(mine.until, renewed.sent + (renewed.body as WireLease).validMs);
      }
    }
    mine.until = -Infinity;
    if (nextFloat() < 0.9) {
      await send("DELETE", `/v1/leases/${lease.leaseId}`);
    }
  };
  const work = async (client: number): Promise<void> => {
    for (let turn = 0; turn < 12; turn += 1) {
      const names = [{}, { attemptId: `${client}` }, { attemptId: `${client}:${turn}` }];
      const attempt = names[below(names.length)];
      const request = { key, ttlMs, waitMs: below(3 * ttlMs), ...attempt };
      const { status, body, sent } = await send("POST", "/v1/leases", request);
      expect([201, 423]).toContain(status);
      if (status === 201) {
        await hold(body as WireLease, sent);
      }
    }
  };
  await Promise.all([0, 1, 2, 3, 4].map(work));
  await Promise.all(late);
  expect(holds).toBeGreaterThan(10);
  for (const { remainingMs } of (await inspect(urls[0], key)).holders) {
    expect(remainingMs).toBeLessThanOrEqual(ttlMs);
  }
  await waitUntil(() => isFree(key), "a lease that no client has received ends");
}, 60_000);
