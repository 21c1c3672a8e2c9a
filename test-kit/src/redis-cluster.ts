import { setTimeout as pause } from "node:timers/promises";

import { startRedis, stablePort, type RedisServer } from "./redis-server.ts";
import { waitUntil } from "./until.ts";

/** A real Redis Cluster that is ours alone, each node a server of its own. */
export interface RedisCluster {
  /** The primaries of the beginning, in the order of their slots, then the replicas. */
  readonly servers: readonly RedisServer[];
  /** Where clients may begin. */
  readonly ports: readonly number[];
  /** The server that has the slot now, as those who live see it. */
  ownerOf(slot: number): Promise<RedisServer>;
  /** Moves a slot with all its keys, as an operator's tools do it. `during` runs while it is open: each key is on one of both sides. */
  migrate(slot: number, to: RedisServer, during?: () => Promise<void>): Promise<void>;
  /** Resolves when every slot has a living owner, and all who live say so. */
  healthy(): Promise<void>;
  stop(): Promise<void>;
}

export interface ClusterOptions {
  readonly primaries?: number;
  /** Spread over the primaries in turn. */
  readonly replicas?: number;
  /** After which silence a primary counts as failed, ms. */
  readonly nodeTimeoutMs?: number;
  readonly args?: readonly string[];
}

const slotCount = 16_384;
const startWithinMs = 60_000;

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

/** For a server to be started with that is a cluster by itself. */
export async function standaloneNodeArgs(): Promise<string[]> {
  return asNode(await stablePort());
}

/** By itself a node takes its port and 10 000 for the bus, where anybody may be, and does not know its address before it meets another. */
function asNode(busPort: number): string[] {
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
  const own = [...asNode(busPort), "--cluster-config-file", "nodes.conf"];
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

/** As this one knows them, a line each. */
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

  /** Asks all who live until they agree: news of a slot takes a moment to get around. */
  async #owner(slot: number): Promise<ClusterMember> {
    const giveUpAt = performance.now() + startWithinMs;
    for (;;) {
      const reply = await Promise.all(this.#livingMember().map((member) => ownerReportedBy(member, slot)));
      const owner = this.#livingMember().find(({ id }) => id === reply[0]);
      if (owner && reply.every((id) => id === owner.id)) {
        return owner;
      }
      if (performance.now() > giveUpAt) {
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
