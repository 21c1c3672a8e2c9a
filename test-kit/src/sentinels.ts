import { randomBytes } from "node:crypto";

import { startRedis, stablePort, type RedisServer } from "./redis-server.ts";
import { waitUntil } from "./until.ts";
import { limitMs } from "./time-limits.ts";

/** A primary with replicas and sentinels. If the primary does not reply, the sentinels promote a replica. */
export interface Sentinels {
  /** The sentinels' name for the primary. */
  readonly name: string;
  /** The addresses of the sentinels, in the form of a client's options. */
  readonly addresses: readonly { readonly host: string; readonly port: number }[];
  /** The first primary and its replicas. */
  readonly servers: readonly RedisServer[];
  readonly sentinels: readonly RedisServer[];
  /** The server that a majority of the sentinels names as primary, when that server reports the role itself. */
  primary(): Promise<RedisServer>;
  /** Resolves when a server other than `former` is the primary. */
  replaced(former: RedisServer): Promise<RedisServer>;
  stop(): Promise<void>;
}

export interface SentinelOptions {
  readonly replicas?: number;
  readonly sentinels?: number;
  /** The time in ms without a reply after which a sentinel considers a server down. */
  readonly downAfterMs?: number;
  /** Arguments of each server, in addition to those for replication. */
  readonly args?: readonly string[];
}

const name = "lab";
const host = "127.0.0.1";
/** Generous for slow machines. Without a fault, no wait lasts as long. */
const failoverWithinMs = limitMs(60_000);

/** Starts all servers, and resolves when every replica follows the primary. */
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

/** The configuration names the other sentinels and the replicas, because their discovery takes seconds. */
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
      `sentinel failover-timeout ${name} 2000`, // the delay before another attempt after a failed failover
      `sentinel parallel-syncs ${name} 8`,
      ...followers.map((follower) => `sentinel known-replica ${name} ${host} ${follower.port}`),
      ...others.map((other) => `sentinel known-sentinel ${name} ${host} ${other.port} ${other.id}`),
    ];
    return start({ port, sentinel: config.join("\n") });
  });
  return Promise.all(started);
}

function sentinelSetup(servers: readonly RedisServer[], sentinels: readonly RedisServer[]): Sentinels {
  const namedPrimary = async (): Promise<RedisServer | undefined> => {
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
        found = await namedPrimary();
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
      await Promise.all(sentinels.map((server) => server.stop())); // first, because running sentinels would promote a replica
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
