import { createLocks, type Driver, type Locks } from "holdfast";
import { redlock } from "holdfast/redis";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { startRedis, type RedisServer } from "@holdfast/test-kit";

import { clientConformance, wholeConformance } from "../../support/conformance.ts";
import { clientLibraries, type OpenClient } from "../../support/clients.ts";
import { onRedis } from "../../support/servers.ts";

interface Setup {
  readonly nodes: number;
  readonly client: keyof typeof clientLibraries;
  readonly keyPrefix?: string;
}

const setups: readonly Setup[] = [
  { nodes: 5, client: "ioredis 6" },
  { nodes: 4, client: "ioredis 5", keyPrefix: "app:" },
  { nodes: 3, client: "node-redis 6" },
];
/** A machine that is busy with other tests makes no node time out, and nodes that were just started vote. */
const patient = { nodeTimeoutMs: 20_000, restartGuard: "off" } as const;

for (const [index, { nodes, client, keyPrefix }] of setups.entries()) {
  /** The quorum of five runs the whole suite. */
  const conformance = index === 0 ? wholeConformance : clientConformance;
  onRedis(`Redlock on ${nodes} nodes by ${client}`, () => {
    let servers: RedisServer[];
    let clients: OpenClient[][];

    beforeAll(async () => {
      servers = await Promise.all(Array.from({ length: nodes }, () => startRedis()));
      const options = keyPrefix === undefined ? {} : { keyPrefix };
      const open = (): Promise<OpenClient[]> =>
        Promise.all(servers.map(({ port }) => clientLibraries[client](port, options)));
      clients = [await open(), await open()];
    });

    afterAll(async () => {
      for (const each of clients.flat()) {
        each.close();
      }
      await Promise.all(servers.map((server) => server.stop()));
    });

    describe.concurrent("passes the conformance suite:", () => {
      conformance({
        test,
        open: async () => {
          const drivers = clients.map((own) =>
            redlock(
              own.map(({ client: one }) => one),
              patient,
            ),
          );
          const [driver, other] = drivers as [Driver, Driver];
          const keepers = await Promise.all(drivers.map(subscribed));
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

    test("afterwards no lock, no queue and no connection of ours is left on any node", async () => {
      for (const [index, server] of servers.entries()) {
        const probe = server.client();
        const own = clients.map((each) => (each[index] as OpenClient).id());
        const given = await Promise.all([...own, probe.client("ID")]);
        await vi.waitFor(async () => {
          expect(await connectionsOf(probe)).toEqual(given.sort((a, b) => a - b));
          expect(await remainingKeys(probe)).toEqual([]);
        });
      }
    });
  });
}

/** Keeps a driver open whose notifications are verified on all nodes. */
async function subscribed(driver: Driver): Promise<Locks> {
  const locks = createLocks(driver);
  await vi.waitFor(
    async () => {
      const states = await locks.admin.nodes();
      expect(states.map(({ notifications }) => notifications)).toEqual(states.map(() => "verified"));
    },
    { interval: 5 },
  );
  return locks;
}

async function connectionsOf(probe: ReturnType<RedisServer["client"]>): Promise<number[]> {
  const list = String(await probe.client("LIST"));
  return Array.from(list.matchAll(/^id=(\d+)/gm), ([, id]) => Number(id)).sort((a, b) => a - b);
}

async function remainingKeys(probe: ReturnType<RedisServer["client"]>): Promise<string[]> {
  const left: string[] = [];
  for (const key of await probe.keys("*")) {
    const ttlMs = await probe.pttl(key);
    const mayStay = key.startsWith("holdfast:audit:") || (/^holdfast:(fence|client):/.test(key) && ttlMs > 0);
    if (!mayStay) {
      const value = await probe.get(key).catch(() => "no string");
      left.push(`${key} for ${ttlMs} ms: ${value}`);
    }
  }
  return left;
}
