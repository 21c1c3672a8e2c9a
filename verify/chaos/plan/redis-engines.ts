import { setTimeout as pause } from "node:timers/promises";

import { redis, redlock, type RedisClient } from "holdfast/redis";
import { Cluster, Redis } from "ioredis";
import { createCluster, createSentinel } from "redis";

import type { ServerAddresses } from "../run/client-protocol.ts";
import type { Connected, Engine } from "./engine.ts";
import type { FaultKind } from "./fault-kinds.ts";
import type { NodeSetup } from "./plan.ts";

const retryMs = 200;
/** With this short claim a frozen waiter delays the others less than with the default of 3 s, so that a run has more freezes. */
const claimMs = 1_000;

/** The faults that any server, connection or client can have. */
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
/** The faults of independent servers. */
const standaloneFaults: readonly FaultKind[] = ["restart with its data", "clock runs unevenly"];

const common = {
  hasReadWrite: true,
  tokenSpread: 64,
  request: /evalsha|eval/i,
  message: /holdfast:grants/, // also the reply to a subscription
} as const;

export const oneServer: Engine = {
  ...common,
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

/** Whether this client of a quorum trusts durable nodes. */
export function trustsDurable(client: number): boolean {
  return client % 2 === 1;
}

export const quorum: Engine = {
  ...common,
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
    "become durable",
    "lose power",
    "freeze a majority",
    "step a clock",
    "refuse all links",
    "black hole on all links",
  ],
  // Over a run a majority of the servers lose their data, each at another time.
  nodes: (count) =>
    Array.from({ length: count }, (_, index) => ({
      durable: index < (count - 1) / 2,
      ...(index === count - 1 && { losesRewrites: true }),
    })),
  connect: ({ ports, client }, without) => {
    const clients = ports.map(createClient);
    const driver = redlock(clients, {
      claimMs,
      maxTtlMs: quorum.maxTtlMs,
      nodeTimeoutMs: 100,
      restartGuard: without === "guard" ? "off" : trustsDurable(client) ? "trust-durable" : "wait",
    });
    return Promise.resolve({
      driver,
      disconnect: () => {
        disconnectAll(clients);
      },
    });
  },
};

/** One logical server of several processes. A replica replaces its primary, by the decision of sentinels or of the cluster. */
const replicated = {
  ...common,
  omissions: {},
  maxTtlMs: 4_000,
  failsOver: true,
  hasSemaphores: true,
  hasLatches: true,
  faultsPerSecond: 1.2,
  nodes: (count: number): readonly NodeSetup[] => Array.from({ length: count }, () => ({ durable: false })),
} as const;

export const sentinel: Engine = {
  ...replicated,
  name: "sentinel",
  nodeCounts: [3],
  faults: [...commonFaults, "kill a primary", "freeze a primary"],
  connect: async (ways) => {
    const [name, map] = ["lab", addressMap(ways)];
    const addresses = ways.sentinels.map((port) => ({ host: "127.0.0.1", port }));
    if (ways.client % 2 === 0) {
      const client = new Redis({ name, sentinels: addresses, natMap: map });
      return connectedWith(client, () => {
        client.disconnect();
      });
    }
    const client = createSentinel({ name, sentinelRootNodes: addresses, nodeAddressMap: map });
    return connectedWith(await connectWithRetries(client), () => client.destroy());
  },
};

export const cluster: Engine = {
  ...replicated,
  name: "cluster",
  nodeCounts: [6],
  faults: [...commonFaults, "kill a primary", "freeze a primary", "move a slot"],
  connect: async (ways) => {
    const map = addressMap(ways);
    const addresses = ways.ports.map((port) => ({ host: "127.0.0.1", port }));
    if (ways.client % 2 === 0) {
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

/** Servers report their own addresses, so each address maps to the proxy in front of the server. */
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

/** node-redis stops if its first connection fails, for example while the server restarts. */
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

/** A client with the usual settings, except for a faster reconnect. */
function createClient(port: number): Redis {
  const client = new Redis({ host: "127.0.0.1", port, retryStrategy: (times) => Math.min(times * 50, 500) });
  // The locks' own calls report a lost connection, but ioredis needs a listener for the event.
  client.on("error", () => undefined);
  return client;
}

function disconnectAll(clients: readonly Redis[]): void {
  for (const client of clients) {
    client.disconnect();
  }
}
