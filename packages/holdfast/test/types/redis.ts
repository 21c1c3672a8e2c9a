// `redis()` accepts real clients with their own types. Compiled with `skipLibCheck: false`.
import type { GlideClient } from "@valkey/valkey-glide";
import type { Cluster as IoredisCluster6, Redis as Ioredis6 } from "ioredis";
import type { Cluster as IoredisCluster5, Redis as Ioredis5 } from "ioredis5";
import type { Cluster as IovalkeyCluster, Redis as Iovalkey } from "iovalkey";
import type {
  createClient as createClient6,
  createCluster as createCluster6,
  createSentinel as createSentinel6,
} from "redis";
import type { createClient as createClient4, createCluster as createCluster4 } from "redis4";
import type {
  createClient as createClient5,
  createCluster as createCluster5,
  createSentinel as createSentinel5,
} from "redis5";

import { redis } from "holdfast/redis";

/** Clients of one server, created without options, and with modules, scripts and either protocol. */
export interface StandaloneClients {
  readonly ioredis6: Ioredis6;
  readonly ioredis6WithResp3: Ioredis6<"resp3">;
  readonly ioredis5: Ioredis5;
  readonly iovalkey: Iovalkey;
  readonly glide: GlideClient;
  readonly nodeRedis6: ReturnType<typeof createClient6>;
  readonly nodeRedis6WithResp3: ReturnType<typeof createClient6<{}, {}, {}, 3, {}>>;
  readonly nodeRedis5: ReturnType<typeof createClient5>;
  readonly nodeRedis5WithResp3: ReturnType<typeof createClient5<{}, {}, {}, 3, {}>>;
  readonly nodeRedis4: ReturnType<typeof createClient4>;
}

/** Clients that find their server by sentinels. */
export interface SentinelClients {
  readonly nodeRedis6: ReturnType<typeof createSentinel6>;
  readonly nodeRedis6WithResp2: ReturnType<typeof createSentinel6<{}, {}, {}, 2, {}>>;
  readonly nodeRedis5: ReturnType<typeof createSentinel5>;
  readonly nodeRedis5WithResp3: ReturnType<typeof createSentinel5<{}, {}, {}, 3, {}>>;
}

export function driversBySentinels(clients: SentinelClients): unknown[] {
  return [
    redis(clients.nodeRedis6),
    redis(clients.nodeRedis6WithResp2),
    redis(clients.nodeRedis5),
    redis(clients.nodeRedis5WithResp3),
  ];
}

export function driversOf(clients: StandaloneClients): unknown[] {
  return [
    redis(clients.ioredis6),
    redis(clients.ioredis6WithResp3),
    redis(clients.ioredis5),
    redis(clients.iovalkey),
    redis(clients.glide),
    redis(clients.nodeRedis6),
    redis(clients.nodeRedis6WithResp3),
    redis(clients.nodeRedis5),
    redis(clients.nodeRedis5WithResp3),
    redis(clients.nodeRedis4),
  ];
}

/** Clients of a cluster. */
export interface ClusterClients {
  readonly ioredis6: IoredisCluster6;
  readonly ioredis5: IoredisCluster5;
  readonly iovalkey: IovalkeyCluster;
  readonly nodeRedis6: ReturnType<typeof createCluster6>;
  readonly nodeRedis6WithResp3: ReturnType<typeof createCluster6<{}, {}, {}, 3, {}>>;
  readonly nodeRedis5: ReturnType<typeof createCluster5>;
  readonly nodeRedis5WithResp3: ReturnType<typeof createCluster5<{}, {}, {}, 3, {}>>;
  readonly nodeRedis4: ReturnType<typeof createCluster4>;
}

export function driversOfClusters(clients: ClusterClients): unknown[] {
  return [
    redis(clients.ioredis6),
    redis(clients.ioredis5),
    redis(clients.iovalkey),
    redis(clients.nodeRedis6),
    redis(clients.nodeRedis6WithResp3),
    redis(clients.nodeRedis5),
    redis(clients.nodeRedis5WithResp3),
    redis(clients.nodeRedis4),
  ];
}

export function refused(clients: StandaloneClients): unknown[] {
  return [
    // @ts-expect-error the options of a client are not a client
    redis({ host: "127.0.0.1", port: 6379 }),
    // @ts-expect-error a URL is no client
    redis("redis://127.0.0.1"),
    // @ts-expect-error a pipeline delays its commands
    redis(clients.ioredis6.pipeline()),
    // @ts-expect-error commandTimeoutMs is a number
    redis(clients.ioredis6, { commandTimeoutMs: "2s" }),
    // @ts-expect-error the option is called commandTimeoutMs
    redis(clients.ioredis6, { timeoutMs: 2_000 }),
  ];
}
