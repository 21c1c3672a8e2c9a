import { ServerClocks } from "@holdfast/test-kit";
import { startEnsemble, startEtcdCluster, startZooKeeper } from "@holdfast/test-kit/engines";
import { createLocks } from "holdfast";
import { zookeeper } from "holdfast/zookeeper";

import type { Plan } from "../plan/plan.ts";
import { EngineServer } from "./engine-server.ts";
import { keyNames } from "./key-names.ts";
import type { ServerGroup } from "./server-group.ts";

const etcdTimeoutMs = 2_000;

/** One or more members of etcd. */
export async function startEtcdServers({ nodes }: Plan): Promise<ServerGroup> {
  const cluster = await startEtcdCluster(nodes.length);
  const servers = cluster.members.map((member) => {
    return new EngineServer(member, { residue: () => residueOfEtcd(member.url) });
  });
  return { servers, sentinels: [], stop: () => cluster.stop() };
}

/** The grants and queue entries. The note of a break stays for its holder, with a TTL, and the record of a break stays. */
async function residueOfEtcd(url: string): Promise<string[]> {
  const response = await fetch(`${url}/v3/kv/range`, {
    method: "POST",
    body: JSON.stringify({ key: base64("holdfast/"), range_end: base64("holdfast0"), keys_only: true }),
    signal: AbortSignal.timeout(etcdTimeoutMs),
  });
  if (!response.ok) {
    throw new Error(await response.text());
  }
  const { kvs = [] } = (await response.json()) as { kvs?: readonly { key: string }[] };
  return kvs
    .map(({ key }) => Buffer.from(key, "base64").toString())
    .filter((key) => !/^holdfast\/(broken|audit)\//.test(key));
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

/** One or more servers of ZooKeeper. */
export async function startZooKeeperServers({ nodes, keys }: Plan): Promise<ServerGroup> {
  const clocks = await ServerClocks.make(nodes.length);
  const variables = clocks.clocks.map(({ env }) => env);
  const members =
    nodes.length === 1
      ? [await startZooKeeper(undefined, variables[0])]
      : await startEnsemble(nodes.length, variables);
  const servers = members.map((member, index) => {
    const residue = (): Promise<string[]> => residueOfZooKeeper(member.address, keyNames(keys));
    const server = { ...member, thaw: () => member.resume() };
    return new EngineServer(server, { residue }, clocks.clocks[index]);
  });
  return {
    servers,
    sentinels: [],
    stop: async () => {
      await Promise.all(members.map((member) => member.stop()));
      await clocks[Symbol.asyncDispose]();
    },
  };
}

/** The holders and the queues of all locks. */
async function residueOfZooKeeper(address: string, keys: readonly string[]): Promise<string[]> {
  const locks = createLocks(zookeeper(address));
  try {
    const states = await Promise.all(keys.map((key) => locks.inspect(key)));
    return states
      .filter(({ holders, waiterCount }) => holders.length + waiterCount > 0)
      .map(({ key, holders, waiterCount }) => `${key}: ${holders.length} holders, ${waiterCount} waiters`);
  } finally {
    await locks.close();
  }
}
