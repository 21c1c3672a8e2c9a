import { createLocks, type Driver, type Locks } from "holdfast";
import { redis, type RedisOptions } from "holdfast/redis";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { startRedis, type RedisServer } from "@holdfast/test-kit";

import { clientConformance, wholeConformance } from "../../support/conformance.ts";
import { mayRemain } from "../../support/residue.ts";
import {
  clientLibraries,
  type ClientLibrary,
  type ClientOptions,
  type OpenClient,
} from "../../support/clients.ts";
import { onRedis } from "../../support/servers.ts";

interface Setup {
  readonly name: string;
  readonly client?: ClientOptions;
  readonly options?: RedisOptions;
}

const databases = [0, 3, 5];
/** Some libraries have settings. The others are tried without. */
const settings: Partial<Record<ClientLibrary, Setup>> = {
  "ioredis 5": { name: "with a keyPrefix, in another database", client: { keyPrefix: "app:", database: 3 } },
  iovalkey: { name: "with a keyPrefix that has a hash tag", client: { keyPrefix: "app:{1}:" } },
  "node-redis 5": { name: "with another prefix", options: { prefix: "tenant-7/" } },
  "node-redis 6": { name: "in another database", client: { database: 5 } },
};
const setups = Object.entries(clientLibraries).map(([library, open]) => {
  const { name, client, options } = settings[library as ClientLibrary] ?? { name: "" };
  return {
    name: `${library} ${name}`.trimEnd(),
    open: (port: number) => open(port, client),
    ...(options && { options }),
  };
});

for (const [index, { name, open, options }] of setups.entries()) {
  /** The first client runs the whole suite. */
  const conformance = index === 0 ? wholeConformance : clientConformance;
  onRedis(`Redis by ${name}`, () => {
    let server: RedisServer;
    let clients: OpenClient[];

    beforeAll(async () => {
      server = await startRedis();
      // The clients outlive the drivers of the tests, so a driver must not close the client that it was given.
      clients = [await open(server.port), await open(server.port)];
    });

    afterAll(async () => {
      for (const client of clients) {
        client.close();
      }
      await server.stop();
    });

    describe.concurrent("passes the conformance suite:", () => {
      conformance({
        test,
        open: async () => {
          const [driver, other] = clients.map(({ client }) => redis(client, options)) as [Driver, Driver];
          const keepers = await Promise.all([driver, other].map(subscribed));
          return {
            driver,
            other,
            cleanup: async () => {
              await Promise.all(keepers.map((locks) => locks.close()));
            },
          };
        },
      });
    });

    test("a driver that is closed while it connects leaves no connection", async () => {
      for (const { client } of clients) {
        for (let turns = 0; turns < 20; turns++) {
          const locks = createLocks(redis(client, options));
          await locks.inspect("key");
          for (let turn = 0; turn < turns; turn++) {
            await new Promise(setImmediate);
          }
          await locks.close();
        }
      }
    });

    test("afterwards no lock, no queue and no connection of the library is left", async () => {
      const probe = server.client();
      const given = await Promise.all([...clients.map((client) => client.id()), probe.client("ID")]);
      await vi.waitFor(
        async () => {
          expect(await connectionsOf(probe)).toEqual(given.sort((a, b) => a - b));
        }, // Valkey GLIDE closes connections after up to 3 s
      );
      expect(await remainingKeys(server)).toEqual([]);
    });
  });
}

/** Keeps a driver open whose notifications are verified, because a break is reported at once only from then on. */
async function subscribed(driver: Driver): Promise<Locks> {
  const locks = createLocks(driver);
  await locks.inspect("any key makes it connect");
  await vi.waitFor(
    async () => {
      expect((await locks.admin.nodes())[0]?.notifications).toBe("verified");
    },
    { interval: 5 },
  );
  return locks;
}

async function connectionsOf(probe: ReturnType<RedisServer["client"]>): Promise<number[]> {
  const list = String(await probe.client("LIST"));
  return Array.from(list.matchAll(/^id=(\d+)/gm), ([, id]) => Number(id)).sort((a, b) => a - b);
}

/** All keys in every database, except those that may stay. */
async function remainingKeys(server: RedisServer): Promise<string[]> {
  const left: string[] = [];
  for (const db of databases) {
    const probe = server.client({ db });
    for (const key of await probe.keys("*")) {
      if (!(await mayRemain(probe, key))) {
        left.push(key);
      }
    }
  }
  return left;
}
