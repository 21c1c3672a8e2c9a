import type { Driver } from "holdfast";
import { redis, redlock } from "holdfast/redis";
import { Redis } from "ioredis";

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
  readonly hasSemaphores: boolean;
  readonly hasLatches: boolean;
  readonly faultsPerSecond: number;
  readonly faults: readonly FaultKind[];
  /** How the servers keep their data, the most trusty first. */
  nodes(count: number, without: Omission | null): readonly NodeSetup[];
  /** In a client process: its way to the servers, over its own proxies. */
  connect(ports: readonly number[], without: Omission | null): Connected;
}

interface Connected {
  readonly driver: Driver;
  /** After the driver is closed. */
  disconnect(): void;
}

/** A frozen waiter costs the others this, not 3 s, so that many fit into a run. */
const claimMs = 1_000;

/** All that can happen to any server and to the ways there. */
const everywhere: readonly FaultKind[] = [
  "restart with its data",
  "freeze a server",
  "clock runs unevenly",
  "flush scripts",
  "end connections",
  "end subscriptions",
  "freeze a client",
  "freeze a client past the TTL",
  "kill a client",
  "block an event loop",
  "refuse one way",
  "black hole on one way",
  "half-open connections",
  "half-open subscriptions",
  "slow connections",
  "lose a reply",
  "lose all replies",
  "lose all messages",
  "break a lock",
];

const oneServer: Engine = {
  name: "redis",
  nodeCounts: [1],
  omissions: { durability: ["restart under a held lock"] },
  maxTtlMs: 3_000,
  hasSemaphores: true,
  hasLatches: true,
  faultsPerSecond: 1.2,
  faults: [...everywhere, "restart under a held lock", "step the clock back"],
  nodes: (_count, without) => [{ durable: without !== "durability" }],
  connect: (ports) => {
    const clients = ports.map(clientOf);
    return {
      driver: redis(clients[0] as Redis, { claimMs }),
      disconnect: () => {
        disconnectAll(clients);
      },
    };
  },
};

const quorum: Engine = {
  name: "redlock",
  nodeCounts: [5, 3],
  omissions: { guard: ["restart a minority empty"] },
  maxTtlMs: 1_500,
  hasSemaphores: false,
  hasLatches: false,
  faultsPerSecond: 1.8,
  faults: [
    ...everywhere,
    "restart empty",
    "restart a minority empty",
    "freeze a majority",
    "step a clock",
    "refuse all ways",
    "black hole on all ways",
  ],
  // Over a run a majority forgets, each at its time.
  nodes: (count) => Array.from({ length: count }, (_, index) => ({ durable: index < (count - 1) / 2 })),
  connect: (ports, without) => {
    const clients = ports.map(clientOf);
    const driver = redlock(clients, {
      claimMs,
      maxTtlMs: quorum.maxTtlMs,
      nodeTimeoutMs: 100,
      restartGuard: without === "guard" ? "off" : "auto",
    });
    return {
      driver,
      disconnect: () => {
        disconnectAll(clients);
      },
    };
  },
};

export const engines: Readonly<Record<EngineName, Engine>> = { redis: oneServer, redlock: quorum };

/** As a user has it, but for a quicker return after a connection was lost. */
function clientOf(port: number): Redis {
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
