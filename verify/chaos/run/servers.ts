import {
  ServerClocks,
  startCluster,
  startSentinels,
  SyncedFiles,
  type ServerClock,
} from "@holdfast/test-kit";

import type { EngineName, NodeSetup, Plan } from "../plan/plan.ts";
import { startMysqlServers, startPostgresServers } from "./database-servers.ts";
import { startEtcdServers, startZooKeeperServers } from "./consensus-servers.ts";
import { keyNames } from "./key-names.ts";
import type { ServerGroup } from "./server-group.ts";
import { RedisChaosServer } from "./redis-chaos-server.ts";
import { FailoverGroups } from "./succession.ts";

export function startServerGroup(plan: Plan): Promise<ServerGroup> {
  return starters[plan.engine](plan);
}

const starters: Readonly<Record<EngineName, (plan: Plan) => Promise<ServerGroup>>> = {
  redis: ({ nodes }) => startStandalone(nodes),
  redlock: ({ nodes }) => startStandalone(nodes),
  sentinel: startSentinelServers,
  cluster: startClusterServers,
  postgres: startPostgresServers,
  mysql: startMysqlServers,
  etcd: startEtcdServers,
  "etcd-cluster": startEtcdServers,
  zookeeper: startZooKeeperServers,
  "zookeeper-ensemble": startZooKeeperServers,
};

/** Independent servers, each with its own clock. */
async function startStandalone(nodes: readonly NodeSetup[]): Promise<ServerGroup> {
  const clocks = await ServerClocks.make(nodes.length);
  const synced = await SyncedFiles.make();
  const servers = await Promise.all(
    nodes.map((setup, index) => RedisChaosServer.launch(setup, clocks.clocks[index] as ServerClock, synced)),
  );
  return {
    servers,
    sentinels: [],
    stop: async () => {
      await Promise.all(servers.map(({ server }) => server.stop()));
      await clocks[Symbol.asyncDispose]();
      await synced[Symbol.asyncDispose]();
    },
  };
}

/** One primary and its replicas. */
async function startSentinelServers({ nodes }: Plan): Promise<ServerGroup> {
  const redis = await startSentinels({ replicas: nodes.length - 1 });
  const servers = redis.servers.map((server) => new RedisChaosServer(server, { durable: false }));
  const failovers = new FailoverGroups([servers], {
    topologyAgreed: async () => void (await redis.primary()),
    follow: (server, primary) => server.follow(primary),
    argsToFollow: ({ port }) => ["--replicaof", `127.0.0.1 ${port}`],
    keysOf: () => Promise.resolve(null),
  });
  return { servers, sentinels: redis.addresses.map(({ port }) => port), failovers, stop: () => redis.stop() };
}

/** After this time without a reply a primary counts as failed, in ms. */
const nodeTimeoutMs = 1_000;

/** Equal numbers of primaries and replicas. Each replica follows one primary. */
async function startClusterServers({ nodes, keys }: Plan): Promise<ServerGroup> {
  const primaries = nodes.length / 2;
  const redis = await startCluster({
    primaries,
    replicas: primaries,
    nodeTimeoutMs,
    args: ["--cluster-allow-replica-migration", "no"],
  });
  const servers = redis.servers.map((server) => new RedisChaosServer(server, { durable: false }));
  const shards = servers.slice(0, primaries).map((server, index) => {
    return [server, servers[index + primaries] as RedisChaosServer];
  });
  const slots = new Map<string, number>();
  for (const key of keyNames(keys)) {
    slots.set(key, await (servers[0] as RedisChaosServer).slotOf(`lock:${key}`));
  }
  const failovers = new FailoverGroups(shards, {
    topologyAgreed: () => redis.healthy(),
    follow: () => Promise.resolve(),
    argsToFollow: () => [],
    keysOf: async (server) => {
      const own = await server.slots();
      return Array.from(slots)
        .filter(([, slot]) => own.some(([first, last]) => first <= slot && slot <= last))
        .map(([key]) => key);
    },
    move: async (key, to) => redis.migrate(slots.get(key) as number, to.server),
  });
  return { servers, sentinels: [], failovers, stop: () => redis.stop() };
}
