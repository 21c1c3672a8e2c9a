import { randomBytes } from "node:crypto";

import { startRedis, stablePort, type RedisServer } from "./redis-server.ts";
import { waitUntil } from "./until.ts";

/** A primary with replicas, watched by sentinels that put a replica in its place when it does not answer. */
export interface Sentinels {
  /** By which the sentinels know the primary. */
  readonly name: string;
  /** In the words of a client's options. */
  readonly addresses: readonly { readonly host: string; readonly port: number }[];
  /** The first primary and its replicas. */
  readonly servers: readonly RedisServer[];
  readonly sentinels: readonly RedisServer[];
  /** Whom a majority of the sentinels calls the primary, once it says so itself. */
  primary(): Promise<RedisServer>;
  /** Resolves when another than this is the primary. */
  replaced(former: RedisServer): Promise<RedisServer>;
  stop(): Promise<void>;
}

export interface SentinelOptions {
  readonly replicas?: number;
  readonly sentinels?: number;
  /** How long a server may be silent before a sentinel takes it for dead, ms. */
  readonly downAfterMs?: number;
  /** Of each server, beside what replication needs. */
  readonly args?: readonly string[];
}

const name = "lab";
const host = "127.0.0.1";
/** Generous, for slow machines; without a fault nothing waits so long. */
const failoverWithinMs = 60_000;

/** Starts them all, and resolves when every replica follows and the sentinels know each other. */
export async function startSentinels(options: SentinelOptions = {}): Promise<Sentinels> {
  const { replicas = 2, sentinels = 3, downAfterMs = 700, args = [] } = options;
  const started: RedisServer[] = [];
  const start = async (...options: Parameters<typeof startRedis>): Promise<RedisServer> => {
    const server = await startRedis(...options);
    started.push(server);
    return server;
  };
  try {
    const own = ["--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0", ...args];
    const primary = await start({ port: await stablePort(), args: own });
    const following = ["--replicaof", `${host} ${primary.port}`, ...own];
    const followers = await Promise.all(
      Array.from({ length: replicas }, async () => start({ port: await stablePort(), args: following })),
    );
    await waitUntil(
      async () => (await linksUp(followers)) === replicas,
      "the replicas follow",
      failoverWithinMs,
    );
    const sentinelServers = await startSentinelServers(
      [primary, ...followers],
      sentinels,
      downAfterMs,
      start,
    );
    return sentinelSetup([primary, ...followers], sentinelServers);
  } catch (error) {
    await Promise.all(started.map((server) => server.stop()));
    throw error;
  }
}

/** They are told of each other and of the replicas: to find that out by themselves takes them seconds. */
async function startSentinelServers(
  [primary, ...followers]: readonly RedisServer[],
  count: number,
  downAfterMs: number,
  start: typeof startRedis,
): Promise<RedisServer[]> {
  const sentinelServers: { readonly port: number; readonly id: string }[] = [];
  for (let index = 0; index < count; index += 1) {
    sentinelServers.push({ port: await stablePort(), id: randomBytes(20).toString("hex") });
  }
  const majority = Math.floor(count / 2) + 1;
  const started = sentinelServers.map(({ port, id }) => {
    const others = sentinelServers.filter((other) => other.id !== id);
    const config = [
      `sentinel myid ${id}`,
      `sentinel monitor ${name} ${host} ${primary?.port} ${majority}`,
      `sentinel down-after-milliseconds ${name} ${downAfterMs}`,
      `sentinel failover-timeout ${name} 2000`, // so long after one that failed the next is tried
      `sentinel parallel-syncs ${name} 8`,
      ...followers.map((follower) => `sentinel known-replica ${name} ${host} ${follower.port}`),
      ...others.map((other) => `sentinel known-sentinel ${name} ${host} ${other.port} ${other.id}`),
    ];
    return start({ port, sentinel: config.join("\n") });
  });
  return Promise.all(started);
}

function sentinelSetup(servers: readonly RedisServer[], sentinels: readonly RedisServer[]): Sentinels {
  const called = async (): Promise<RedisServer | undefined> => {
    const ports = await Promise.all(sentinels.map(portOfPrimary));
    const agreed = ports.find(
      (port) => ports.filter((other) => other === port).length > sentinels.length / 2,
    );
    const server = servers.find(({ port }) => port === agreed);
    return server && (await roleOf(server)) === "master" ? server : undefined;
  };
  const find = async (
    isExpectedPrimary: (server: RedisServer) => boolean,
    description: string,
  ): Promise<RedisServer> => {
    let found: RedisServer | undefined;
    await waitUntil(
      async () => {
        found = await called();
        return found !== undefined && isExpectedPrimary(found);
      },
      description,
      failoverWithinMs,
    );
    return found as RedisServer;
  };
  return {
    name,
    addresses: sentinels.map(({ port }) => ({ host, port })),
    servers,
    sentinels,
    primary: () => find(() => true, "there is a primary"),
    replaced: (former) => find(({ port }) => port !== former.port, "there is another primary"),
    stop: async () => {
      await Promise.all(sentinels.map((server) => server.stop())); // first: or they would promote somebody
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}

const shortTimeouts = { retryStrategy: () => null, commandTimeout: 500, maxRetriesPerRequest: 0 } as const;

async function runCommand(server: RedisServer, command: string, ...args: string[]): Promise<unknown> {
  const client = server.client(shortTimeouts);
  try {
    return await client.call(command, ...args).catch(() => undefined);
  } finally {
    client.disconnect();
  }
}

async function portOfPrimary(sentinel: RedisServer): Promise<number> {
  const address = (await runCommand(sentinel, "sentinel", "get-master-addr-by-name", name)) as
    string[] | undefined;
  return Number(address?.[1]);
}

async function roleOf(server: RedisServer): Promise<unknown> {
  return ((await runCommand(server, "role")) as unknown[] | undefined)?.[0];
}

async function linksUp(followers: readonly RedisServer[]): Promise<number> {
  const infos = await Promise.all(followers.map((follower) => runCommand(follower, "info", "replication")));
  return infos.filter((info) => String(info).includes("master_link_status:up")).length;
}
