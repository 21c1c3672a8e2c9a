// The entry points without locks accept real clients with their own types. Compiled with `skipLibCheck: false`.
import type { Cluster as IoredisCluster6, Redis as Ioredis6 } from "ioredis";
import type { Redis as Ioredis5 } from "ioredis5";
import type { Kysely } from "kysely";
import type { Connection as MysqlConnection, Pool as MysqlPool } from "mysql2/promise";
import type { Client as PgClient, Pool as PgPool } from "pg";
import type { Sql } from "postgres";
import type { createClient as createClient6, createCluster as createCluster6 } from "redis";
import type { createClient as createClient4, createCluster as createCluster4 } from "redis4";
import type { createClient as createClient5, createCluster as createCluster5 } from "redis5";

import { fencedRedis, type FencedOutcome, type FencedWrite } from "holdfast/fencing";
import { optimistic, versionedRow, type VersionedRowOptions } from "holdfast/optimistic";

interface Stock {
  article: string;
  units: number;
  version: number;
}

export interface RedisClients {
  readonly ioredis6: Ioredis6;
  readonly ioredis6WithResp3: Ioredis6<"resp3">;
  readonly ioredis6Cluster: IoredisCluster6;
  readonly ioredis5: Ioredis5;
  readonly nodeRedis6: ReturnType<typeof createClient6>;
  readonly nodeRedis6Cluster: ReturnType<typeof createCluster6>;
  readonly nodeRedis5: ReturnType<typeof createClient5>;
  readonly nodeRedis5Cluster: ReturnType<typeof createCluster5>;
  readonly nodeRedis4: ReturnType<typeof createClient4>;
  readonly nodeRedis4Cluster: ReturnType<typeof createCluster4>;
}

export function fencedWrites(clients: RedisClients, write: FencedWrite): Promise<FencedOutcome>[] {
  return [
    fencedRedis(clients.ioredis6, write),
    fencedRedis(clients.ioredis6WithResp3, write),
    fencedRedis(clients.ioredis6Cluster, write),
    fencedRedis(clients.ioredis5, write),
    fencedRedis(clients.nodeRedis6, write),
    fencedRedis(clients.nodeRedis6Cluster, write),
    fencedRedis(clients.nodeRedis5, write),
    fencedRedis(clients.nodeRedis5Cluster, write),
    fencedRedis(clients.nodeRedis4, write),
    fencedRedis(clients.nodeRedis4Cluster, write),
  ];
}

export interface SqlClients {
  readonly pgPool: PgPool;
  readonly pgClient: PgClient;
  readonly postgres: Sql;
  readonly mysqlPool: MysqlPool;
  readonly mysqlConnection: MysqlConnection;
  readonly kysely: Kysely<{ stock: Stock }>;
}

export function updates(clients: SqlClients, options: VersionedRowOptions<Stock>): Promise<Stock>[] {
  return [
    optimistic(versionedRow(clients.pgPool, options)),
    optimistic(versionedRow(clients.pgClient, options)),
    optimistic(versionedRow(clients.postgres, options)),
    optimistic(versionedRow(clients.mysqlPool, options)),
    optimistic(versionedRow(clients.mysqlConnection, options)),
    optimistic(versionedRow(clients.kysely, options)),
  ];
}
