import type * as Ioredis from "ioredis";

import { keepOverReconnects } from "../redis/clients/ioredis.ts";
import { reconnectDelayMs, type OwnedClient, type ClientSettings } from "./client-settings.ts";
import { tlsTo } from "./tls.ts";

type Library = Pick<typeof Ioredis, "Redis" | "Cluster">;
type Options = Omit<Ioredis.RedisOptions, "protocol" | "replyMapping">;

interface HostPort {
  readonly host: string;
  readonly port: number;
}

/**
 * Clients of ioredis, which connect by themselves and again after every loss. At a loss every command is given back, and none is
 * sent a second time by the client: a repeat is ours to decide, as the request may be over by then. (`autoResendUnfulfilledCommands:
 * false` alone would not do: unanswered commands were then dropped without a word.)
 */
export function openIoredis(library: object, settings: ClientSettings): OwnedClient[] {
  const { Redis, Cluster } = library as Library;
  const { url, credentials } = settings;
  const common = commonOptions(settings);
  if (url.topology === "sentinel") {
    return [opened(new Redis({ ...common, ...sentinelOptions(settings) }), settings)];
  }
  if (url.topology === "cluster") {
    const options = { clusterRetryStrategy: reconnectDelay(settings), redisOptions: common };
    return [opened(new Cluster(url.endpoints as HostPort[], options), settings)];
  }
  return url.endpoints.map((endpoint) => {
    const tls = tlsTo(endpoint, settings.tls);
    const options: Options = { ...common, ...endpoint, ...(tls && { tls }), db: credentials.database };
    return opened(new Redis(options), settings);
  });
}

function commonOptions(settings: ClientSettings): Options {
  const { credentials, tls, commandTimeoutMs } = settings;
  const { username, password, connectionName, connectTimeoutMs } = credentials;
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(connectionName !== undefined && { connectionName }),
    ...(tls !== undefined && { tls }),
    connectTimeout: connectTimeoutMs,
    socketTimeout: Math.max(10_000, 2 * commandTimeoutMs), // half-open: the system itself would try for a quarter of an hour
    retryStrategy: reconnectDelay(settings),
    maxRetriesPerRequest: 0,
    disableClientInfo: true,
  };
}

function sentinelOptions({ url, credentials, tls, random }: ClientSettings): Options {
  const { sentinelUsername, sentinelPassword, database } = credentials;
  return {
    sentinels: url.endpoints as HostPort[],
    name: url.primary as string,
    db: database,
    ...(sentinelUsername !== undefined && { sentinelUsername }),
    ...(sentinelPassword !== undefined && { sentinelPassword }),
    ...(tls !== undefined && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
    sentinelRetryStrategy: (times) => reconnectDelayMs(times, random),
    sentinelReconnectStrategy: (times) => reconnectDelayMs(times, random),
    failoverDetector: true, // else a connection to a primary that was replaced, and lives, would be kept
  };
}

function reconnectDelay({ random }: ClientSettings): (times: number) => number {
  return (times) => reconnectDelayMs(times, random);
}

function opened(client: Ioredis.Redis | Ioredis.Cluster, { failed }: ClientSettings): OwnedClient {
  client.on("error", (error) => {
    keepOverReconnects(client);
    failed(error);
  });
  return { client: client as unknown as OwnedClient["client"], close: () => client.disconnect() };
}
