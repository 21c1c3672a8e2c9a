import { LockError } from "../../../errors.ts";
import { invalidValue } from "../../../option-checks.ts";
import { IoredisCluster, isIoredisCluster, type IoredisClusterClient } from "./ioredis-cluster.ts";
import type { ClusterClient } from "./cluster-client.ts";
import { isNodeRedisCluster, NodeRedisCluster, type NodeRedisClusterClient } from "./node-redis-cluster.ts";
import { BunConnection, isBunRedis, type BunRedisClient } from "./bun.ts";
import type { Connection } from "./connection.ts";
import { GlideConnection, isGlide } from "./glide.ts";
import type { GlideClient } from "./glide-client.ts";
import { usesSentinels, IoredisSentinelConnection } from "./ioredis-sentinel.ts";
import { IoredisConnection, isIoredis, type IoredisClient } from "./ioredis.ts";
import {
  isNodeRedisSentinel,
  NodeRedisSentinelConnection,
  type NodeRedisSentinelClient,
} from "./node-redis-sentinel.ts";
import { isNodeRedis, NodeRedisConnection, type NodeRedisClient } from "./node-redis.ts";

/** A client of ioredis, iovalkey, node-redis, Valkey GLIDE or Bun, for a server or a cluster, distinguished by its shape. Or a custom {@link Connection}. */
export type RedisClient =
  | IoredisClient
  | NodeRedisClient
  | NodeRedisSentinelClient
  | IoredisClusterClient
  | NodeRedisClusterClient
  | GlideClient
  | BunRedisClient
  | Connection;

/** The adapter for the client of a cluster. Undefined for other clients. */
export function detectCluster(client: RedisClient): ClusterClient | undefined {
  if (client === null || typeof client !== "object" || isConnection(client)) {
    return undefined;
  } else if (isIoredisCluster(client)) {
    return new IoredisCluster(client);
  }
  return isNodeRedisCluster(client) ? new NodeRedisCluster(client) : undefined;
}

/** The adapter for the client of a server. The adapter sends nothing yet, and never closes the client. */
export function detectConnection(client: RedisClient): Connection {
  if (client === null || client === undefined) {
    throw invalidValue("client", "an ioredis or node-redis client", client);
  }
  if (typeof client !== "object") {
    throw new TypeError(`Expected \`client\` to be an ioredis or node-redis client, got a ${typeof client}`); // only the type, because a URL may have a password
  }
  if (isConnection(client)) {
    return client;
  }
  assertSupportedClient(client);
  if (isIoredis(client)) {
    assertComplete(client, "ioredis", ioredisMethods);
    return usesSentinels(client) ? new IoredisSentinelConnection(client) : new IoredisConnection(client);
  }
  if (isNodeRedisSentinel(client)) {
    return new NodeRedisSentinelConnection(client);
  }
  if (isNodeRedis(client)) {
    assertComplete(client, "node-redis", nodeRedisMethods);
    return new NodeRedisConnection(client);
  }
  if (isGlide(client)) {
    return new GlideConnection(client);
  }
  if (isBunRedis(client)) {
    return new BunConnection(client);
  }
  throw invalidValue("client", "an ioredis or node-redis client", client);
}

/** The adapter for a node of a quorum. A node must always be the same server, because another server may have lost its votes. */
export function connectionOfNode(client: RedisClient): Connection {
  const connection = detectConnection(client);
  if (connection.refreshPrimary) {
    connection.close?.();
    throw new LockError("A node of a quorum must be one server. Sentinels are not supported.", {
      code: "unsupported",
    });
  }
  return connection;
}

const ioredisMethods = [
  "call",
  "duplicate",
  "sendCommand",
  "subscribe",
  "unsubscribe",
  "disconnect",
  "on",
  "off",
];
const nodeRedisMethods = ["duplicate", "sendCommand", "on", "off"];

/** A mock may have the shape of a client, and lack what runs scripts. */
function assertComplete(client: object, library: string, methods: readonly string[]): void {
  const missing = methods.find((name) => typeof (client as Record<string, unknown>)[name] !== "function");
  if (missing !== undefined) {
    throw new TypeError(
      `Expected \`client\` to be a client of ${library}, got an object without \`${missing}\`, such as a mock; for tests without a server use memory() of holdfast/memory`,
    );
  }
}

function isConnection(client: object): client is Connection {
  return "run" in client && "subscribe" in client && "onDown" in client;
}

/** Refuses clients with the right shape that cannot work. */
function assertSupportedClient(client: object): void {
  if (isIoredisCluster(client) || isNodeRedisCluster(client)) {
    throw new LockError("A quorum requires independent servers. A client of a cluster is not supported.", {
      code: "unsupported",
    });
  }
  if ("execute" in client || "totalClients" in client) {
    throw new TypeError(
      "Expected `client` to be one connection, got a pool: a pool does not send commands in order",
    );
  }
  if ("customCommand" in client && "invokeScriptWithRoute" in client) {
    throw new LockError("The cluster client of Valkey GLIDE is not supported. Use ioredis or node-redis.", {
      code: "unsupported",
    });
  }
  const { options } = client as { options?: { role?: unknown } };
  if (options?.role === "slave") {
    throw new TypeError('Expected `client` to lead to the primary, got one with `role: "slave"`');
  }
}
