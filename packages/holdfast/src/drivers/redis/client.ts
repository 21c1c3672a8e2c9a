import { LockError } from "../../errors.ts";
import { refusal } from "../../options.ts";
import type { Connection } from "./connection.ts";
import { IoredisConnection, isIoredis, type IoredisClient } from "./ioredis.ts";
import { isNodeRedis, NodeRedisConnection, type NodeRedisClient } from "./node-redis.ts";

/** A client of ioredis or node-redis, told apart by shape; or a {@link Connection} of one's own. */
export type RedisClient = IoredisClient | NodeRedisClient | Connection;

/** Fits a client to what we need. Nothing is sent, and the client is never closed by us. */
export function connectionOf(client: RedisClient): Connection {
  if (client === null) {
    throw refusal("client", "an ioredis or node-redis client", client);
  }
  if (typeof client !== "object") {
    throw new TypeError(`Expected \`client\` to be an ioredis or node-redis client, got a ${typeof client}`); // a URL has a password
  }
  if (isConnection(client)) {
    return client;
  }
  refuseUnsuited(client);
  if (isIoredis(client)) {
    return new IoredisConnection(client);
  }
  if (isNodeRedis(client)) {
    return new NodeRedisConnection(client);
  }
  throw refusal("client", "an ioredis or node-redis client", client);
}

function isConnection(client: object): client is Connection {
  return "run" in client && "subscribe" in client && "onDown" in client;
}

/** What has the shape of a client and would not do. */
function refuseUnsuited(client: object): void {
  if ("slots" in client || ("isCluster" in client && client.isCluster === true)) {
    throw new LockError("Redis Cluster is not supported yet: give a client of one server", {
      code: "unsupported",
    });
  }
  if ("use" in client && "acquire" in client) {
    throw new LockError("node-redis Sentinel is not supported yet: give a client of one server", {
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
