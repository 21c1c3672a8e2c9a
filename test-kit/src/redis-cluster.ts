import { setTimeout as pause } from "node:timers/promises";

import { startRedis, stablePort, type RedisServer } from "./redis-server.ts";
import { waitUntil } from "./until.ts";
import { limitMs } from "./time-limits.ts";

/** A private, real Redis Cluster. Each node is a separate server. */
export interface RedisCluster {
  /** The initial primaries in the order of their slots, then the replicas. */
  readonly servers: readonly RedisServer[];
  /** The ports that clients can use to find the cluster. */
  readonly ports: readonly number[];
  /** The present owner of the slot, on which all living nodes agree. */
  ownerOf(slot: number): Promise<RedisServer>;
  /**
   * Moves a slot with all its keys, as the tools of operators do. `during` runs while the slot migrates and each key is on one of
   * the two nodes.
   */
  migrate(slot: number, to: RedisServer, during?: () => Promise<void>): Promise<void>;
  /** Resolves when all living nodes report that every slot has a living owner. */
  healthy(): Promise<void>;
  stop(): Promise<void>;
}

export interface ClusterOptions {
  readonly primaries?: number;
  /** The number of replicas, which are assigned to the primaries in turn. */
  readonly replicas?: number;
  /** The time in ms without a reply after which a primary counts as failed. */
  readonly nodeTimeoutMs?: number;
  readonly args?: readonly string[];
}

const slotCount = 16_384;
const startWithinMs = limitMs(60_000);

/** Starts the servers and joins them to a cluster whose replicas have all data. */
export async function startCluster(options: ClusterOptions = {}): Promise<RedisCluster> {
  const { primaries = 3, replicas = 3, nodeTimeoutMs = 2_000, args = [] } = options;
  const members: ClusterMember[] = [];
  try {
    for (let i = 0; i < primaries + replicas; i++) {
      members.push(await startMember(nodeTimeoutMs, args));
    }
    await joinCluster(members, primaries);
    const cluster = new Cluster(members);
    await cluster.healthy();
    return cluster;
  } catch (error) {
    await Promise.all(members.map(({ server }) => server.stop()));
    throw error;
  }
}

/** The arguments of a server that forms a cluster alone. */
export async function standaloneNodeArgs(): Promise<string[]> {
  return clusterArgs(await stablePort());
}

/**
 * The arguments of a node of a cluster. The bus port is explicit, because another program may use the default (the port plus 10
 * 000). The address is explicit too, because a node learns its address only when it meets another node.
 */
function clusterArgs(busPort: number): string[] {
  return [
    "--cluster-enabled",
    "yes",
    "--cluster-port",
    String(busPort),
    "--cluster-announce-ip",
    "127.0.0.1",
  ];
}

interface ClusterMember {
  readonly server: RedisServer;
  readonly busPort: number;
  readonly id: string;
  readonly command: (...command: (string | number)[]) => Promise<unknown>;
}

async function startMember(nodeTimeoutMs: number, args: readonly string[]): Promise<ClusterMember> {
  const [port, busPort] = [await stablePort(), await stablePort()];
  const own = [...clusterArgs(busPort), "--cluster-config-file", "nodes.conf"];
  const timing = ["--cluster-node-timeout", String(nodeTimeoutMs), "--repl-diskless-sync-delay", "0"];
  const server = await startRedis({
    port,
    args: [...own, ...timing, ...args],
  });
  const client = server.client({ enableOfflineQueue: true, maxRetriesPerRequest: 1 });
  const command = (...[name, ...rest]: (string | number)[]): Promise<unknown> =>
    client.call(String(name), ...rest);
  return { server, busPort, id: String(await command("CLUSTER", "MYID")), command };
}

async function joinCluster(members: readonly ClusterMember[], primaries: number): Promise<void> {
  const slotsPerPrimary = slotCount / primaries;
  for (const [i, { command }] of members.entries()) {
    await command("CLUSTER", "SET-CONFIG-EPOCH", i + 1);
    if (i < primaries) {
      await command(
        "CLUSTER",
        "ADDSLOTSRANGE",
        Math.ceil(i * slotsPerPrimary),
        Math.ceil((i + 1) * slotsPerPrimary) - 1,
      );
    }
  }
  const [first, ...rest] = members as [ClusterMember, ...ClusterMember[]];
  for (const { server, busPort } of rest) {
    await first.command("CLUSTER", "MEET", "127.0.0.1", server.port, busPort);
  }
  await waitUntil(
    async () => (await Promise.all(members.map(countKnown))).every((known) => known === members.length),
    "all nodes know each other",
    startWithinMs,
  );
  for (const [i, { command }] of members.slice(primaries).entries()) {
    await command("CLUSTER", "REPLICATE", members[i % primaries]?.id ?? "");
  }
  await waitUntil(
    async () => (await Promise.all(members.slice(primaries).map(hasSyncedReplicas))).every(Boolean),
    "the replicas have their primaries' data",
    startWithinMs,
  );
  await waitUntil(
    async () =>
      (await Promise.all(members.map(countReplicas))).every((n) => n === members.length - primaries),
    "all nodes know the replicas",
    startWithinMs,
  );
}

async function countKnown(member: ClusterMember): Promise<number> {
  return (await nodesOf(member)).filter((line) => !/handshake|noaddr/.test(line)).length;
}

async function countReplicas(member: ClusterMember): Promise<number> {
  return (await nodesOf(member)).filter((line) => /\bslave\b/.test(line)).length;
}

/** The nodes as this member knows them, one line each. */
async function nodesOf({ command }: ClusterMember): Promise<string[]> {
  return String(await command("CLUSTER", "NODES"))
    .trim()
    .split("\n");
}

async function hasSyncedReplicas({ command }: ClusterMember): Promise<boolean> {
  return String(await command("INFO", "replication")).includes("master_link_status:up");
}

class Cluster implements RedisCluster {
  readonly #members: readonly ClusterMember[];

  constructor(members: readonly ClusterMember[]) {
    this.#members = members;
  }

  get servers(): readonly RedisServer[] {
    return this.#members.map(({ server }) => server);
  }

  get ports(): readonly number[] {
    return this.servers.map(({ port }) => port);
  }

  async ownerOf(slot: number): Promise<RedisServer> {
    return (await this.#owner(slot)).server;
  }

  async migrate(slot: number, to: RedisServer, during?: () => Promise<void>): Promise<void> {
    const source = await this.#owner(slot);
    const target = this.#members.find(({ server }) => server === to);
    if (!target || target === source) {
      throw new Error("Expected another node of this cluster to migrate to");
    }
    await target.command("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id);
    await source.command("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id);
    await during?.();
    for (;;) {
      const keys = (await source.command("CLUSTER", "GETKEYSINSLOT", slot, 16)) as string[];
      if (keys.length === 0) {
        break;
      }
      await source.command("MIGRATE", "127.0.0.1", target.server.port, "", 0, 5_000, "KEYS", ...keys);
    }
    for (const { command } of [target, source]) {
      await command("CLUSTER", "SETSLOT", slot, "NODE", target.id);
    }
  }

  healthy(): Promise<void> {
    return waitUntil(
      async () => {
        const reply = await Promise.all(
          this.#livingMember().map(({ command }) => command("CLUSTER", "INFO").then(String)),
        );
        return reply.every((info) => info.includes("cluster_state:ok"));
      },
      "the cluster is healthy",
      startWithinMs,
    );
  }

  async stop(): Promise<void> {
    await Promise.all(this.#members.map(({ server }) => server.stop()));
  }

  #livingMember(): ClusterMember[] {
    return this.#members.filter(({ server }) => server.isAlive);
  }

  /** Polls all living nodes until they agree, because news of a slot takes a moment to spread. */
  async #owner(slot: number): Promise<ClusterMember> {
    const deadline = performance.now() + startWithinMs;
    for (;;) {
      const reply = await Promise.all(this.#livingMember().map((member) => ownerReportedBy(member, slot)));
      const owner = this.#livingMember().find(({ id }) => id === reply[0]);
      if (owner && reply.every((id) => id === owner.id)) {
        return owner;
      }
      if (performance.now() > deadline) {
        throw new Error(`the nodes do not agree on slot ${slot}: ${reply.join(", ")}`);
      }
      await pause(20);
    }
  }
}

async function ownerReportedBy({ command }: ClusterMember, slot: number): Promise<string | undefined> {
  const ranges = (await command("CLUSTER", "SLOTS")) as [number, number, [string, number, string]][];
  return ranges.find(([from, to]) => from <= slot && slot <= to)?.[2][2];
}
