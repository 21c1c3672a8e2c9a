import type * as Ioredis from "ioredis";

import { outliveSocket } from "../redis/clients/ioredis.ts";
import { pauseMs, type Opened, type Plan } from "./client-settings.ts";
import { tlsTo } from "./tls.ts";

type Library = Pick<typeof Ioredis, "Redis" | "Cluster">;
type Options = Omit<Ioredis.RedisOptions, "protocol" | "replyMapping">;

interface Host {
  readonly host: string;
  readonly port: number;
}

/**
 * Clients of ioredis, which connect by themselves and again after every loss. At a loss every command is given back, and none is
 * sent a second time by the client: a repeat is ours to decide, as the request may be over by then. (`autoResendUnfulfilledCommands:
 * false` alone would not do: unanswered commands were then dropped without a word.)
 */
export function openByIoredis(library: object, plan: Plan): Opened[] {
  const { Redis, Cluster } = library as Library;
  const { address, access } = plan;
  const common = commonOptions(plan);
  if (address.topology === "sentinel") {
    return [opened(new Redis({ ...common, ...sentinelOptions(plan) }), plan)];
  }
  if (address.topology === "cluster") {
    const options = { clusterRetryStrategy: pauses(plan), redisOptions: common };
    return [opened(new Cluster(address.endpoints as Host[], options), plan)];
  }
  return address.endpoints.map((endpoint) => {
    const tls = tlsTo(endpoint, plan.tls);
    const options: Options = { ...common, ...endpoint, ...(tls && { tls }), db: access.database };
    return opened(new Redis(options), plan);
  });
}

function commonOptions(plan: Plan): Options {
  const { access, tls, commandTimeoutMs } = plan;
  const { username, password, connectionName, connectTimeoutMs } = access;
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(connectionName !== undefined && { connectionName }),
    ...(tls !== undefined && { tls }),
    connectTimeout: connectTimeoutMs,
    socketTimeout: Math.max(10_000, 2 * commandTimeoutMs), // half-open: the system itself would try for a quarter of an hour
    retryStrategy: pauses(plan),
    maxRetriesPerRequest: 0,
    disableClientInfo: true,
  };
}

function sentinelOptions({ address, access, tls, random }: Plan): Options {
  const { sentinelUsername, sentinelPassword, database } = access;
  return {
    sentinels: address.endpoints as Host[],
    name: address.primary as string,
    db: database,
    ...(sentinelUsername !== undefined && { sentinelUsername }),
    ...(sentinelPassword !== undefined && { sentinelPassword }),
    ...(tls !== undefined && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
    sentinelRetryStrategy: (times) => pauseMs(times, random),
    sentinelReconnectStrategy: (times) => pauseMs(times, random),
    failoverDetector: true, // else a connection to a primary that was replaced, and lives, would be kept
  };
}

function pauses({ random }: Plan): (times: number) => number {
  return (times) => pauseMs(times, random);
}

function opened(client: Ioredis.Redis | Ioredis.Cluster, { failed }: Plan): Opened {
  client.on("error", (error) => {
    outliveSocket(client);
    failed(error);
  });
  return { client: client as unknown as Opened["client"], close: () => client.disconnect() };
}
