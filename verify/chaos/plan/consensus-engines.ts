import { etcd } from "holdfast/etcd";
import { zookeeper } from "holdfast/zookeeper";

import { commonEngine, commonFaults, severalFaults } from "./common-engine.ts";
import type { Engine } from "./engine.ts";
import type { FaultKind } from "./fault-kinds.ts";

/** With this session timeout a frozen waiter delays the others less than with the default of 6 s. */
const sessionTimeoutMs = 2_000;

const common = { ...commonEngine, hasReadWrite: false, hasSemaphores: false } as const;

const etcdFaults: readonly FaultKind[] = [...commonFaults, "half-open subscriptions", "lose all messages"];
/** ZooKeeper uses its wall clock only for grants of processes that have ended, with a margin of a minute. */
const zooKeeperFaults: readonly FaultKind[] = [...commonFaults, "step the server's clock"];

export const oneEtcd: Engine = {
  ...common,
  name: "etcd",
  nodeCounts: [1],
  request: /POST \/v3\/(kv|lease)/,
  message: /"events":/,
  faults: [...etcdFaults, "restart under a held lock"],
  connect: ({ ports, client }) => {
    const urls = fromOwn(ports, client).map((port) => `http://127.0.0.1:${port}`);
    return Promise.resolve({ driver: etcd(urls), disconnect: () => undefined });
  },
};

export const etcdCluster: Engine = {
  ...oneEtcd,
  name: "etcd-cluster",
  nodeCounts: [3],
  faults: [...etcdFaults, ...severalFaults],
};

export const oneZooKeeper: Engine = {
  ...common,
  name: "zookeeper",
  nodeCounts: [1],
  request: /\/holdfast\/locks\//,
  faults: [...zooKeeperFaults, "restart under a held lock"],
  connect: ({ ports }) => {
    const servers = ports.map((port) => `127.0.0.1:${port}`);
    return Promise.resolve({
      driver: zookeeper(servers, { sessionTimeoutMs }),
      disconnect: () => undefined,
    });
  },
};

export const zooKeeperEnsemble: Engine = {
  ...oneZooKeeper,
  name: "zookeeper-ensemble",
  nodeCounts: [3],
  faults: [...zooKeeperFaults, ...severalFaults],
};

/** Each client prefers another server. */
function fromOwn(ports: readonly number[], client: number): number[] {
  const first = client % ports.length;
  return [...ports.slice(first), ...ports.slice(0, first)];
}
