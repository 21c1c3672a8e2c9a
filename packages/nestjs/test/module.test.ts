import {
  getLocksToken,
  LocksHealthIndicator,
  LocksModule,
  LocksTestingModule,
  type ModuleOptions,
} from "@holdfast/nestjs";
import { Module } from "@nestjs/common";
import { Test } from "@nestjs/testing";
import { createLocks, isLockError, type Locks } from "holdfast";
import { memory } from "holdfast/memory";
import { startRedis, type RedisServer } from "@holdfast/test-kit";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";

import { onRedis } from "../../holdfast/test/support/servers.ts";

onRedis("LocksModule on a server", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  test("uses a client of another module, several instances, and the options of both", async () => {
    const client = new Redis(server.port);
    @Module({ providers: [{ provide: "REDIS", useValue: client }], exports: ["REDIS"] })
    class RedisModule {}

    const module = await Test.createTestingModule({
      imports: [
        LocksModule.forRoot({
          clientToken: "REDIS",
          imports: [RedisModule],
          redis: { prefix: "a:" },
          owner: "one",
        }),
        LocksModule.forRootAsync({
          name: "jobs",
          imports: [RedisModule],
          inject: ["REDIS"],
          useFactory: (shared: Redis) => ({ client: shared }),
        }),
        LocksModule.forRoot({
          name: "url",
          url: `redis://127.0.0.1:${server.port}`,
          connect: { prefix: "a:" },
        }),
      ],
    }).compile();
    const [locks, jobs, byUrl] = [undefined, "jobs", "url"].map((name) =>
      module.get<Locks>(getLocksToken(name)),
    );
    const lease = await locks!.acquire("key");
    await jobs!.acquire("key");
    expect((await client.keys("*:key")).sort()).toEqual(["a:key", "lock:key"]);
    const waiting = await byUrl!.acquire("key", { waitMs: 0 }).catch((error: unknown) => error);
    expect(isLockError(waiting, "wait-timeout") && waiting.holder?.owner).toBe("one");
    expect(lease.owner).toBe("one");

    await module.close();
    expect(await client.keys("*:key")).toEqual([]);
    expect(client.status).toBe("ready"); // the client is the application's
    client.disconnect();
  });
});

test("the tests of an application replace its engine", async () => {
  const module = await Test.createTestingModule({
    imports: [LocksModule.forRoot({ url: "redis://127.0.0.1:1" })],
  })
    .overrideProvider(getLocksToken())
    .useValue(createLocks(memory()))
    .compile();
  const locks = module.get<Locks>(getLocksToken());
  expect(await locks.withLock("key", ({ key }) => key)).toBe("key");
  const health = module.get(LocksHealthIndicator);
  expect(await health.isHealthy("memory")).toMatchObject({ memory: { status: "up", usable: 1 } });
  await module.close();
  expect(await health.isHealthy()).toEqual({ locks: { status: "down", usable: 0, servers: [] } });
  await locks.close();
});

test.each([
  [{}, "got none"],
  [{ url: undefined }, "got none"],
  [{ url: "memory:", locks: createLocks(memory()) }, "got url, locks"],
  [{ url: "memory:", ownr: "a" }, "Unknown option `ownr`"],
  [{ url: "redis" }, "url"],
])("%o is refused at the start", async (options, message) => {
  const module = Test.createTestingModule({
    imports: [LocksModule.forRoot(options as unknown as ModuleOptions)],
  });
  await expect(module.compile()).rejects.toThrow(message);
});

test.each([
  { url: "memory:", client: undefined, locks: undefined },
  { url: undefined, locks: createLocks(memory()) },
])("%o: an undefined source counts as not given", async (options) => {
  const module = await Test.createTestingModule({
    imports: [LocksModule.forRoot(options as unknown as ModuleOptions)],
  }).compile();
  expect(await module.get<Locks>(getLocksToken()).withLock("key", ({ key }) => key)).toBe("key");
  await module.close();
});

test("an application without the module does not start, and the error names its token", async () => {
  const module = Test.createTestingModule({
    providers: [{ provide: "X", inject: [getLocksToken("jobs")], useFactory: () => 1 }],
  });
  await expect(module.compile()).rejects.toThrow("holdfast.locks:jobs");
});

test("each testing module has its own memory", async () => {
  const modules = await Promise.all(
    [1, 2].map(() => Test.createTestingModule({ imports: [LocksTestingModule.forRoot()] }).compile()),
  );
  const leases = await Promise.all(
    modules.map((module) => module.get<Locks>(getLocksToken()).tryAcquire("key")),
  );
  expect(leases).not.toContain(null);
  await Promise.all(modules.map((module) => module.close()));
});
