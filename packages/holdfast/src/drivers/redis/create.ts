import type { Driver } from "../../driver.ts";
import { LockError } from "../../errors.ts";
import { detectCluster, detectConnection, type RedisClient } from "./clients/detect.ts";
import { ClusterDirectory } from "./cluster/directory.ts";
import { counterKey } from "./protocol/keys.ts";
import { SingleServer, singleServerBatches } from "./single/server-directory.ts";
import { RedisServer } from "./server/server.ts";
import { RedisDriver } from "./single/driver.ts";
import type { CreateDirectory } from "./single/request-registry.ts";
import { resolveRedis, type OneServerSettings, type RedisOptions } from "./options.ts";
import { ReplicatedDriver } from "./replicas/replicated-driver.ts";

/**
 * Locks on one Redis (6.2 or newer) or Valkey server, with replicas or without, or on a Redis Cluster (7 or newer).
 *
 * The driver never closes the client, because the client is the caller's. The driver opens one more connection, for notifications.
 * For a cluster it opens two connections to each primary in use, for commands and for notifications.
 * @example
 * ```ts
 * const locks = createLocks(redis(new Redis(process.env.REDIS_URL), { prefix: "app:" }));
 * ```
 */
export function redis(client: RedisClient, options?: RedisOptions): Driver {
  const settings = resolveRedis(options);
  const { layout } = settings;
  const cluster = detectCluster(client);
  if (cluster) {
    assertOneServer(settings);
    return new RedisDriver(settings, cluster.keyPrefix, (clientId, listener) => {
      return new ClusterDirectory({ ...settings, client: cluster, clientId, listener });
    });
  }
  const connection = detectConnection(client);
  if (layout) {
    return layout.open(connection, settings);
  }
  const batches = singleServerBatches(counterKey(), settings.queueBound, settings.commandTimeoutMs);
  const createDirectory: CreateDirectory = (clientId, listener) =>
    new SingleServer(new RedisServer({ ...settings, connection, clientId, batches, listener }));
  return settings.minReplicas === 0
    ? new RedisDriver(settings, connection.keyPrefix, createDirectory)
    : new ReplicatedDriver(settings, connection, createDirectory);
}

/**
 * `WAIT` counts the replicas of one server, for one connection. A layout has keys and channels of one server. A cluster has many servers.
 */
function assertOneServer({ minReplicas, layout }: OneServerSettings): void {
  if (minReplicas > 0) {
    throw unsupportedInCluster("minReplicas", "one server with replicas");
  } else if (layout) {
    throw unsupportedInCluster("layout", "one server, perhaps with sentinels");
  }
}

function unsupportedInCluster(option: string, need: string): LockError {
  return new LockError(`Option \`${option}\` requires ${need}. A cluster does not support it.`, {
    code: "unsupported",
  });
}
