import type { Driver } from "../../driver.ts";
import { clusterOf, connectionOf, type RedisClient } from "./client.ts";
import { ClusterDirectory } from "./cluster/cluster-directory.ts";
import { OneServer } from "./directory.ts";
import { Node } from "./node.ts";
import { RedisDriver } from "./one-server.ts";
import { resolveRedis, type RedisOptions } from "./options.ts";

/**
 * Locks on one Redis (6.2 or newer) or Valkey server, or on a Redis Cluster (7 or newer). The client stays the caller's: it is never
 * closed. Beside it one more connection is opened for messages; of a cluster two to each primary in use, for commands and messages.
 */
export function redis(client: RedisClient, options?: RedisOptions): Driver {
  const settings = resolveRedis(options);
  const cluster = clusterOf(client);
  if (cluster) {
    return new RedisDriver(settings, cluster.keyPrefix, (clientId, listener) => {
      return new ClusterDirectory({ ...settings, client: cluster, clientId, listener });
    });
  }
  const connection = connectionOf(client);
  return new RedisDriver(settings, connection.keyPrefix, (clientId, listener) => {
    return new OneServer(new Node({ ...settings, connection, clientId, listener }));
  });
}
