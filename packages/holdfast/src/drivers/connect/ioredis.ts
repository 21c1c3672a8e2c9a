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
 * Opens clients of ioredis, which connect and reconnect automatically. When a connection is lost, the client rejects all unanswered
 * commands and never resends them. The driver decides on repeats, because the request may have ended since.
 * `autoResendUnfulfilledCommands: false` is not enough, because ioredis would then drop unanswered commands without settling them.
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
    socketTimeout: Math.max(10_000, 2 * commandTimeoutMs), // the system would keep a half-open connection for 15 minutes
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
    failoverDetector: true, // without this, ioredis keeps its connection to a replaced primary that still runs
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
