import { setTimeout as pause } from "node:timers/promises";

import type { Driver } from "holdfast";
import { redis, redlock, type RedisClient } from "holdfast/redis";
import { Cluster, Redis } from "ioredis";
import { createCluster, createSentinel } from "redis";

import type { ServerAddresses } from "../run/client-protocol.ts";
import type { FaultKind } from "./fault-kinds.ts";
import type { EngineName, NodeSetup, Omission } from "./plan.ts";

/** What is put to the test. Another one joins by this interface, and by the faults that it has to survive. */
export interface Engine {
  readonly name: EngineName;
  readonly nodeCounts: readonly number[];
  /** The rules that can be left out, and the faults that then show it: only those are done. */
  readonly omissions: Readonly<Partial<Record<Omission, readonly FaultKind[]>>>;
  /** The largest TTL that is used, ms. */
  readonly maxTtlMs: number;
  /** What was granted may be lost where one server takes the place of another: exclusion is not promised across that. */
  readonly failsOver: boolean;
  readonly hasSemaphores: boolean;
  readonly hasLatches: boolean;
  readonly faultsPerSecond: number;
  readonly faults: readonly FaultKind[];
  /** How the servers keep their data, the most trusty first. */
  nodes(count: number, without: Omission | null): readonly NodeSetup[];
  /** In a client process: its way to the servers, over its own proxies. */
  connect(ways: ServerAddresses, without: Omission | null): Promise<Connected>;
}

interface Connected {
  readonly driver: Driver;
  /** After the driver is closed. */
  disconnect(): void;
}

const retryMs = 200;
/** A frozen waiter costs the others this, not 3 s, so that many fit into a run. */
const claimMs = 1_000;

/** All that can happen to any server, to the ways there and to clients. */
const commonFaults: readonly FaultKind[] = [
  "freeze a server",
  "flush scripts",
  "end connections",
  "end subscriptions",
  "freeze a client",
  "freeze a client past the TTL",
  "kill a client",
  "block an event loop",
  "refuse one link",
  "black hole on one link",
  "half-open connections",
  "half-open subscriptions",
  "slow connections",
  "lose a reply",
  "lose all replies",
  "lose all messages",
  "break a lock",
];
/** Of servers that know nothing of each other. */
const standaloneFaults: readonly FaultKind[] = ["restart with its data", "clock runs unevenly"];

const oneServer: Engine = {
  name: "redis",
  nodeCounts: [1],
  omissions: { durability: ["restart under a held lock"] },
  maxTtlMs: 3_000,
  failsOver: false,
  hasSemaphores: true,
  hasLatches: true,
  faultsPerSecond: 1.2,
  faults: [...commonFaults, ...standaloneFaults, "restart under a held lock", "step the clock back"],
  nodes: (_count, without) => [{ durable: without !== "durability" }],
  connect: ({ ports }) => {
    const clients = ports.map(createClient);
    return Promise.resolve({
      driver: redis(clients[0] as Redis, { claimMs }),
      disconnect: () => {
        disconnectAll(clients);
      },
    });
  },
};

const quorum: Engine = {
  name: "redlock",
  nodeCounts: [5, 3],
  omissions: { guard: ["restart a minority empty"] },
  maxTtlMs: 1_500,
  failsOver: false,
  hasSemaphores: false,
  hasLatches: false,
  faultsPerSecond: 1.8,
  faults: [
    ...commonFaults,
    ...standaloneFaults,
    "restart empty",
    "restart a minority empty",
    "freeze a majority",
    "step a clock",
    "refuse all links",
    "black hole on all links",
  ],
  // Over a run a majority forgets, each at its time.
  nodes: (count) => Array.from({ length: count }, (_, index) => ({ durable: index < (count - 1) / 2 })),
  connect: ({ ports }, without) => {
    const clients = ports.map(createClient);
    const driver = redlock(clients, {
      claimMs,
      maxTtlMs: quorum.maxTtlMs,
      nodeTimeoutMs: 100,
      restartGuard: without === "guard" ? "off" : "auto",
    });
    return Promise.resolve({
      driver,
      disconnect: () => {
        disconnectAll(clients);
      },
    });
  },
};

/** One logical server: a replica takes the place of its primary, as sentinels decide or the shard of a cluster does. */
const replicated = {
  omissions: {},
  maxTtlMs: 4_000,
  failsOver: true,
  hasSemaphores: true,
  hasLatches: true,
  faultsPerSecond: 1.2,
  nodes: (count: number): readonly NodeSetup[] => Array.from({ length: count }, () => ({ durable: false })),
} as const;

const sentinel: Engine = {
  ...replicated,
  name: "sentinel",
  nodeCounts: [3],
  faults: [...commonFaults, "kill a primary", "freeze a primary"],
  connect: async (ways) => {
    const [name, map] = ["lab", addressMap(ways)];
    const addresses = ways.sentinels.map((port) => ({ host: "127.0.0.1", port }));
    if (ways.library === "ioredis") {
      const client = new Redis({ name, sentinels: addresses, natMap: map });
      return connectedWith(client, () => {
        client.disconnect();
      });
    }
    const client = createSentinel({ name, sentinelRootNodes: addresses, nodeAddressMap: map });
    return connectedWith(await connectWithRetries(client), () => client.destroy());
  },
};

const cluster: Engine = {
  ...replicated,
  name: "cluster",
  nodeCounts: [6],
  faults: [...commonFaults, "kill a primary", "freeze a primary", "move a slot"],
  connect: async (ways) => {
    const map = addressMap(ways);
    const addresses = ways.ports.map((port) => ({ host: "127.0.0.1", port }));
    if (ways.library === "ioredis") {
      const client = new Cluster(addresses, { natMap: map });
      return connectedWith(client as unknown as RedisClient & Cluster, () => {
        client.disconnect();
      });
    }
    const client = createCluster({
      rootNodes: addresses.map((socket) => ({ socket })),
      nodeAddressMap: map,
    });
    return connectedWith(await connectWithRetries(client), () => {
      client.destroy();
    });
  },
};

export const engines: Readonly<Record<EngineName, Engine>> = {
  redis: oneServer,
  redlock: quorum,
  sentinel,
  cluster,
};

/** Servers tell each other's own addresses; the ways there are by the proxies. */
function addressMap({ ports, servers }: ServerAddresses): Record<string, { host: string; port: number }> {
  return Object.fromEntries(
    servers.map((server, index) => [
      `127.0.0.1:${server}`,
      { host: "127.0.0.1", port: ports[index] as number },
    ]),
  );
}

interface ErrorEmitter {
  on(event: "error", listener: () => void): unknown;
}

function connectedWith(client: RedisClient & ErrorEmitter, end: () => unknown): Connected {
  client.on("error", () => undefined);
  return { driver: redis(client, { claimMs }), disconnect: () => void end() };
}

/** node-redis gives up if it cannot connect at first, as where its server is down just then. */
async function connectWithRetries<Client extends ErrorEmitter & { connect(): Promise<unknown> }>(
  client: Client,
): Promise<Client> {
  client.on("error", () => undefined);
  for (;;) {
    try {
      await client.connect();
      return client;
    } catch {
      await pause(retryMs);
    }
  }
}

/** As a user has it, but for a quicker return after a connection was lost. */
function createClient(port: number): Redis {
  const client = new Redis({ host: "127.0.0.1", port, retryStrategy: (times) => Math.min(times * 50, 500) });
  // A lost connection shows in the locks' own calls; ioredis only wants a listener.
  client.on("error", () => undefined);
  return client;
}

function disconnectAll(clients: readonly Redis[]): void {
  for (const client of clients) {
    client.disconnect();
  }
}
