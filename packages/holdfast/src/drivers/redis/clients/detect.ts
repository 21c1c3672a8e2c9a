import { LockError } from "../../../errors.ts";
import { invalidValue } from "../../../option-checks.ts";
import { IoredisCluster, isIoredisCluster, type IoredisClusterClient } from "./ioredis-cluster.ts";
import type { ClusterClient } from "./cluster-client.ts";
import { isNodeRedisCluster, NodeRedisCluster, type NodeRedisClusterClient } from "./node-redis-cluster.ts";
import type { Connection } from "./connection.ts";
import { usesSentinels, IoredisSentinelConnection } from "./ioredis-sentinel.ts";
import { IoredisConnection, isIoredis, type IoredisClient } from "./ioredis.ts";
import {
  isNodeRedisSentinel,
  NodeRedisSentinelConnection,
  type NodeRedisSentinelClient,
} from "./node-redis-sentinel.ts";
import { isNodeRedis, NodeRedisConnection, type NodeRedisClient } from "./node-redis.ts";

/** A client of ioredis or node-redis, of a server or a cluster, told apart by shape; or a {@link Connection} of one's own. */
export type RedisClient =
  | IoredisClient
  | NodeRedisClient
  | NodeRedisSentinelClient
  | IoredisClusterClient
  | NodeRedisClusterClient
  | Connection;

/** Fits the client of a cluster to what we need; undefined: it is none. */
export function detectCluster(client: RedisClient): ClusterClient | undefined {
  if (client === null || typeof client !== "object" || isConnection(client)) {
    return undefined;
  } else if (isIoredisCluster(client)) {
    return new IoredisCluster(client);
  }
  return isNodeRedisCluster(client) ? new NodeRedisCluster(client) : undefined;
}

/** Fits a client to what we need. Nothing is sent, and the client is never closed by us. */
export function detectConnection(client: RedisClient): Connection {
  if (client === null) {
    throw invalidValue("client", "an ioredis or node-redis client", client);
  }
  if (typeof client !== "object") {
    throw new TypeError(`Expected \`client\` to be an ioredis or node-redis client, got a ${typeof client}`); // a URL has a password
  }
  if (isConnection(client)) {
    return client;
  }
  assertSupportedClient(client);
  if (isIoredis(client)) {
    return usesSentinels(client) ? new IoredisSentinelConnection(client) : new IoredisConnection(client);
  }
  if (isNodeRedisSentinel(client)) {
    return new NodeRedisSentinelConnection(client);
  }
  if (isNodeRedis(client)) {
    return new NodeRedisConnection(client);
  }
  throw invalidValue("client", "an ioredis or node-redis client", client);
}

/** The same for a node of a quorum, which has to be one server and stay it: another in its place may have forgotten. */
export function connectionOfNode(client: RedisClient): Connection {
  const connection = detectConnection(client);
  if (connection.refreshPrimary) {
    connection.close?.();
    throw new LockError("A node of a quorum is one server, and no primary found by sentinels", {
      code: "unsupported",
    });
  }
  return connection;
}

function isConnection(client: object): client is Connection {
  return "run" in client && "subscribe" in client && "onDown" in client;
}

/** What has the shape of a client and would not do. */
function assertSupportedClient(client: object): void {
  if (isIoredisCluster(client) || isNodeRedisCluster(client)) {
    throw new LockError("A quorum is of independent servers: give it no client of a cluster", {
      code: "unsupported",
    });
  }
  if ("execute" in client || "totalClients" in client) {
    throw new TypeError("Expected `client` to be one connection, got a pool: it keeps no order of commands");
  }
  const { options } = client as { options?: { role?: unknown } };
  if (options?.role === "slave") {
    throw new TypeError('Expected `client` to lead to the primary, got one with `role: "slave"`');
  }
}
