import { startRedis, waitUntil } from "@holdfast/test-kit";
import { createLocks, type Locks } from "holdfast";
import { http, type WireLease } from "holdfast/http";
import { afterEach, describe, expect, test } from "vitest";

import { getChildren, getData } from "../../holdfast/src/drivers/zookeeper/wire/operations.ts";
import { Session } from "../../holdfast/src/drivers/zookeeper/wire/session.ts";
import { systemClock } from "../../holdfast/src/runtime/clock.ts";
import { systemRandom } from "../../holdfast/src/runtime/random.ts";
import { startNacos } from "../../holdfast/test/support/nacos-simulator/simulator.ts";
import { onRedis } from "../../holdfast/test/support/servers.ts";
import { onZooKeeper, startZooKeeper } from "../../holdfast/test/support/zookeeper-server.ts";
import { createService } from "../src/index.ts";
import { acquire, sendRequest } from "./support/service.ts";

interface RunningEngine {
  readonly url: string;
  /** A value that each extension of the only grant changes. */
  written(): Promise<string>;
  stop(): Promise<void>;
}

interface Case {
  readonly start: () => Promise<RunningEngine>;
  /** Whether an instance knows the remaining time of another instance's grant. */
  readonly tellsAge: boolean;
}

const key = "read";
const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) {
    await cleanup();
  }
});

function describeReads({ start, tellsAge }: Case): void {
  async function startServices(): Promise<{ engine: RunningEngine; urls: [string, string] }> {
    const engine = await start();
    cleanups.push(engine.stop);
    const options = { engine: engine.url, leaseKey: "a key of all instances" };
    const services = [await createService(options), await createService(options)];
    cleanups.push(...services.map((service) => () => service.close()));
    const urls = await Promise.all(services.map((service) => service.listen({ port: 0 })));
    return { engine, urls: urls as [string, string] };
  }

  test("a lease that another instance reads is not extended, and reads as lost after its TTL", async () => {
    const { engine, urls } = await startServices();
    const { leaseId, fencingToken } = await acquire(urls[0], { key, ttlMs: 3_000 });
    const before = await engine.written();
    const path = `/v1/leases/${leaseId}`;
    let last = await sendRequest(urls[1], "GET", path);
    expect(last).toMatchObject({ status: 200, body: { fencingToken } });
    const { validMs } = last.body as WireLease;
    expect(validMs > 0 && validMs <= 3_000, String(validMs)).toBe(tellsAge);
    expect(validMs === 0).toBe(!tellsAge);
    expect(await engine.written()).toBe(before);
    await waitUntil(async () => {
      last = await sendRequest(urls[1], "GET", path);
      return last.status !== 200;
    }, "the lease reads as lost");
    expect(last).toMatchObject({ status: 410, body: { code: "lease-lost", reason: "expired" } });
  });

  test("an adoption by another instance has a validity, and is renewed and released there", async () => {
    const { urls } = await startServices();
    const [here, there] = urls.map((url) => createLocks(http(url))) as [Locks, Locks];
    cleanups.push(...[here, there].map((locks) => () => locks.close()));
    const lease = await there.adopt((await here.acquire(key, { ttlMs: 20_000 })).transfer());
    expect(lease.remainingMs()).toBeGreaterThan(5_000);
    await lease.extend();
    expect(await lease.release()).toBe(true);
    expect(await (await here.acquire(key)).release()).toBe(true);
  });
}

onRedis("on Redis,", () => {
  describeReads({
    tellsAge: true,
    start: async () => {
      const server = await startRedis();
      const client = server.client();
      const written = async (): Promise<string> => String(await client.call("PEXPIRETIME", `lock:${key}`));
      return { url: `redis://127.0.0.1:${server.port}`, written, stop: () => server.stop() };
    },
  });
});

onZooKeeper("on ZooKeeper,", () => {
  describeReads({
    tellsAge: false,
    start: async () => {
      const server = await startZooKeeper();
      const session = new Session({
        hosts: [{ host: "127.0.0.1", port: server.port }],
        sessionTimeoutMs: 10_000,
        commandTimeoutMs: 5_000,
        credentials: undefined,
        clock: systemClock,
        random: systemRandom,
      });
      const written = async (): Promise<string> => {
        const lock = `/holdfast/locks/${key}`;
        const [held] = (await session.freshly(getChildren(lock))).filter((name) => name.startsWith("held-"));
        return String((await session.freshly(getData(`${lock}/${held}`))).stat.version);
      };
      const stop = (): Promise<void> => session.close().then(() => server.stop());
      return { url: `zookeeper://${server.address}`, written, stop };
    },
  });
});

describe("on Nacos,", () => {
  describeReads({
    tellsAge: false,
    start: async () => {
      const { urls, database, stop } = await startNacos({ servers: 2 });
      const hosts = urls.map((url) => new URL(url).host);
      const written = (): Promise<string> => Promise.resolve(String(database.history));
      return { url: `nacos://${hosts.join(",")}`, written, stop };
    },
  });
});
