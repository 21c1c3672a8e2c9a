// The client libraries that users have, as their own types describe them. Compiled with `skipLibCheck: false`.
import type { Cluster as IoredisCluster, Redis as Ioredis } from "ioredis";
import type { Cluster as Ioredis5Cluster, Redis as Ioredis5 } from "ioredis5";
import type { createClient, createCluster, createSentinel } from "redis";
import type { createClient as createClient4, createCluster as createCluster4 } from "redis4";
import type {
  createClient as createClient5,
  createCluster as createCluster5,
  createSentinel as createSentinel5,
} from "redis5";

export interface RealClients {
  readonly ioredis6: Ioredis | IoredisCluster;
  readonly ioredis5: Ioredis5 | Ioredis5Cluster;
  readonly nodeRedis6: ReturnType<typeof createClient | typeof createCluster | typeof createSentinel>;
  readonly nodeRedis5: ReturnType<typeof createClient5 | typeof createCluster5 | typeof createSentinel5>;
  readonly nodeRedis4: ReturnType<typeof createClient4 | typeof createCluster4>;
}
