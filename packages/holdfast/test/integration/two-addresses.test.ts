import dns from "node:dns";

import { createLocks, type Locks } from "holdfast";
import { connect } from "holdfast/connect";
import { redis, redlock } from "holdfast/redis";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { rejection, stablePort } from "@holdfast/test-kit";

/** As `localhost` on most machines, which is ::1 and 127.0.0.1. Not each machine has ::1. */
const host = "two-addresses.test";
const addresses = ["127.0.0.1", "127.0.0.2"].map((address) => ({ address, family: 4 }));

describe("a host with several addresses, where nothing listens,", () => {
  let port: number;

  beforeAll(async () => {
    port = await stablePort();
    const { lookup } = dns;
    vi.spyOn(dns, "lookup").mockImplementation(((name: string, options: unknown, callback?: unknown) => {
      const done = (callback ?? options) as (...args: unknown[]) => void;
      if (name !== host) {
        (lookup as (...args: unknown[]) => void)(name, options, callback);
      } else if ((options as { all?: boolean }).all) {
        process.nextTick(done, null, addresses);
      } else {
        process.nextTick(done, null, addresses[0]?.address, 4);
      }
    }) as never);
  });

  afterAll(() => vi.restoreAllMocks());

  const short = { commandTimeoutMs: 300 };
  const drivers: Readonly<Record<string, () => Promise<Locks> | Locks>> = {
    ioredis: () => createLocks(redis(ioredis(), short)),
    "node-redis": () => {
      const client = createClient({ socket: { host, port } }).on("error", () => undefined);
      client.connect().catch(() => undefined);
      return createLocks(redis(client, short));
    },
    redlock: () => createLocks(redlock([ioredis(), ioredis(), ioredis()], { nodeTimeoutMs: 300 })),
    ...Object.fromEntries(
      ["redis", "http", "postgres", "mysql", "etcd", "zookeeper"].map((scheme) => [
        scheme,
        async () =>
          createLocks(
            await connect(`${scheme}://${host}:${port}/${scheme === "mysql" ? "shop" : ""}`, short),
          ),
      ]),
    ),
  };

  function ioredis(): Redis {
    return new Redis({ host, port }).on("error", () => undefined);
  }

  test.each(Object.keys(drivers))("is named with the reason by %s", async (name) => {
    const locks = await (drivers[name] as () => Promise<Locks>)();
    try {
      const { error } = await rejection(locks.acquire("key", { waitMs: 400 }));
      expect((error as Error).message).toMatch(/ECONNREFUSED/);
    } finally {
      await locks.close();
    }
  });
});
