import type { Driver } from "../../driver.ts";
import { LockError } from "../../errors.ts";
import { detectCluster, detectConnection, type RedisClient } from "./clients/detect.ts";
import { ClusterDirectory } from "./cluster/directory.ts";
import { SingleServer } from "./single/server-directory.ts";
import { RedisServer } from "./server/server.ts";
import { RedisDriver } from "./single/driver.ts";
import { resolveRedis, type OneServerSettings, type RedisOptions } from "./options.ts";
import { ReplicatedDriver } from "./replicas/replicated-driver.ts";

/**
 * Locks on one Redis (6.2 or newer) or Valkey server, with replicas or without, or on a Redis Cluster (7 or newer). The client stays the caller's: it is never
 * closed. Beside it one more connection is opened for messages; of a cluster two to each primary in use, for commands and messages.
 */
export function redis(client: RedisClient, options?: RedisOptions): Driver {
  const settings = resolveRedis(options);
  const cluster = detectCluster(client);
  if (cluster) {
    assertNoReplicas(settings);
    return new RedisDriver(settings, cluster.keyPrefix, (clientId, listener) => {
      return new ClusterDirectory({ ...settings, client: cluster, clientId, listener });
    });
  }
  const connection = detectConnection(client);
  const driver = new RedisDriver(settings, connection.keyPrefix, (clientId, listener) => {
    return new SingleServer(new RedisServer({ ...settings, connection, clientId, listener }));
  });
  return settings.minReplicas === 0 ? driver : new ReplicatedDriver(driver, connection, settings);
}

/** `WAIT` speaks of one connection to one server; a cluster has many. */
function assertNoReplicas({ minReplicas }: OneServerSettings): void {
  if (minReplicas > 0) {
    throw new LockError("minReplicas is for one server with replicas, not for a cluster", {
      code: "unsupported",
    });
  }
}
