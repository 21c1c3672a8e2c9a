import { ServerClocks, startCluster, startSentinels, type ServerClock } from "@holdfast/test-kit";

import type { EngineName, NodeSetup, Plan } from "../plan/plan.ts";
import { ChaosServer } from "./chaos-server.ts";
import { Succession } from "./succession.ts";

/** The servers of a run. */
export interface Ensemble {
  readonly servers: readonly ChaosServer[];
  /** Where sentinels listen. */
  readonly sentinels: readonly number[];
  /** Absent: nobody takes another's place. */
  readonly succession?: Succession;
  stop(): Promise<void>;
}

export function startEnsemble(plan: Plan): Promise<Ensemble> {
  return starters[plan.engine](plan);
}

const starters: Readonly<Record<EngineName, (plan: Plan) => Promise<Ensemble>>> = {
  redis: ({ nodes }) => startEach(nodes),
  redlock: ({ nodes }) => startEach(nodes),
  sentinel: withSentinels,
  cluster: withShards,
};

/** Servers that know nothing of each other, each with a clock of its own. */
async function startEach(nodes: readonly NodeSetup[]): Promise<Ensemble> {
  const clocks = await ServerClocks.make(nodes.length);
  const servers = await Promise.all(
    nodes.map((setup, index) => ChaosServer.start(setup, clocks.clocks[index] as ServerClock)),
  );
  return {
    servers,
    sentinels: [],
    stop: async () => {
      await Promise.all(servers.map(({ server }) => server.stop()));
      await clocks[Symbol.asyncDispose]();
    },
  };
}

/** One primary and its replicas. */
async function withSentinels({ nodes }: Plan): Promise<Ensemble> {
  const lab = await startSentinels({ replicas: nodes.length - 1 });
  const servers = lab.servers.map((server) => new ChaosServer(server));
  const succession = new Succession([servers], {
    agreed: async () => void (await lab.primary()),
    follow: (server, primary) => server.follow(primary),
    argsToFollow: ({ port }) => ["--replicaof", `127.0.0.1 ${port}`],
    keysOf: () => Promise.resolve(null),
  });
  return { servers, sentinels: lab.addresses.map(({ port }) => port), succession, stop: () => lab.stop() };
}

/** So long a primary is silent before it counts as failed, ms. */
const nodeTimeoutMs = 1_000;

/** As many primaries as replicas, of which each follows the same one. */
async function withShards({ nodes, keys }: Plan): Promise<Ensemble> {
  const primaries = nodes.length / 2;
  const lab = await startCluster({
    primaries,
    replicas: primaries,
    nodeTimeoutMs,
    args: ["--cluster-allow-replica-migration", "no"],
  });
  const servers = lab.servers.map((server) => new ChaosServer(server));
  const shards = servers.slice(0, primaries).map((server, index) => {
    return [server, servers[index + primaries] as ChaosServer];
  });
  const slots = new Map<string, number>();
  for (const key of namesIn(keys)) {
    slots.set(key, await (servers[0] as ChaosServer).slotOf(`lock:${key}`));
  }
  const succession = new Succession(shards, {
    agreed: () => lab.healthy(),
    follow: () => Promise.resolve(),
    argsToFollow: () => [],
    keysOf: async (server) => {
      const own = await server.slots();
      return Array.from(slots)
        .filter(([, slot]) => own.some(([first, last]) => first <= slot && slot <= last))
        .map(([key]) => key);
    },
    move: async (key, to) => lab.migrate(slots.get(key) as number, to.server),
  });
  return { servers, sentinels: [], succession, stop: () => lab.stop() };
}

function namesIn(keys: Plan["keys"]): string[] {
  return [
    keys.hot,
    ...keys.lukewarm,
    ...keys.own,
    ...keys.readWrite,
    ...keys.semaphores.map(({ key }) => key),
    ...keys.sets,
    ...keys.reentrant,
    ...keys.elections,
  ];
}
