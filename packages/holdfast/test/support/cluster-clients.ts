import { Cluster as Ioredis6Cluster } from "ioredis";
import { Cluster as Ioredis5Cluster } from "ioredis5";
import { createCluster as createCluster6 } from "redis";
import { createCluster as createCluster4 } from "redis4";
import { createCluster as createCluster5 } from "redis5";

import type { RedisClient } from "holdfast/redis";

/** The connected client of a cluster, as a user creates it. */
export interface OpenCluster {
  readonly client: RedisClient;
  close(): void;
}

/** Every client library that is supported for clusters, by its name and major version. */
export const clusterLibraries: Readonly<Record<ClusterLibrary, OpenClusterLibrary>> = {
  "ioredis 6": async (port, keyPrefix = "") => {
    const client = new Ioredis6Cluster([{ host: "127.0.0.1", port }], { keyPrefix });
    client.on("error", ignore);
    await client.ping();
    return open(client, () => client.disconnect());
  },
  "ioredis 5": async (port, keyPrefix = "") => {
    const client = new Ioredis5Cluster([{ host: "127.0.0.1", port }], { keyPrefix });
    client.on("error", ignore);
    await client.ping();
    return open(client, () => client.disconnect());
  },
  "node-redis 6": async (port) => {
    const client = createCluster6({ rootNodes: [{ socket: { host: "127.0.0.1", port } }] });
    client.on("error", ignore);
    await client.connect();
    return open(client, () => client.destroy());
  },
  "node-redis 5": async (port) => {
    const client = createCluster5({ rootNodes: [{ socket: { host: "127.0.0.1", port } }] });
    client.on("error", ignore);
    await client.connect();
    return open(client, () => client.destroy());
  },
  "node-redis 4": async (port) => {
    const client = createCluster4({ rootNodes: [{ socket: { host: "127.0.0.1", port } }] });
    client.on("error", ignore);
    await client.connect();
    return open(client, () => void client.disconnect().catch(ignore));
  },
};

export type ClusterLibrary = `ioredis ${5 | 6}` | `node-redis ${4 | 5 | 6}`;
export type OpenClusterLibrary = (port: number, keyPrefix?: string) => Promise<OpenCluster>;

function open(client: RedisClient, close: () => void): OpenCluster {
  return { client, close };
}

function ignore(): void {
  // The affected commands report the errors of a connection.
}
