import type { Contestant } from "../contestants/contestant.ts";
import type { Engine } from "../engines/engine.ts";

/** The locks that programs write by hand on each engine, or get from its usual client. The first one is the engine's own lock. */
export const rivalsOf: Readonly<Record<Engine, readonly [Rival, ...Rival[]]>> = {
  postgres: ["advisory-lock", "postgres-poller"],
  mysql: ["get-lock", "mysql-poller"],
  etcd: ["lock-rpc", "lock-rpc-own-lease"],
  zookeeper: ["kazoo"],
};

export type Rival =
  | "advisory-lock"
  | "postgres-poller"
  | "get-lock"
  | "mysql-poller"
  | "lock-rpc"
  | "lock-rpc-own-lease"
  | "kazoo";

export const rivals: readonly Rival[] = Object.values(rivalsOf).flat();

export function isRival(name: string): name is Rival {
  return (rivals as readonly string[]).includes(name);
}

/** The client that a rival uses. */
export function clientOf(rival: Rival): "pg" | "mysql2" | "node" | "kazoo" {
  switch (rival) {
    case "advisory-lock":
    case "postgres-poller":
      return "pg";
    case "get-lock":
    case "mysql-poller":
      return "mysql2";
    case "lock-rpc":
    case "lock-rpc-own-lease":
      return "node";
    case "kazoo":
      return "kazoo";
  }
}

type Loaders = Readonly<Record<string, () => Promise<Contestant<string>>>>;

/** Each contestant is imported only in the process that runs it. The process of kazoo is a program in Python. */
export const onEngines: Readonly<Record<Engine, Loaders>> = {
  postgres: {
    holdfast: async () => (await import("../contestants/engines/holdfast.ts")).onPostgres,
    "advisory-lock": async () => (await import("../contestants/engines/postgres.ts")).advisoryLock,
    "postgres-poller": async () => (await import("../contestants/engines/postgres.ts")).postgresPoller,
  },
  mysql: {
    holdfast: async () => (await import("../contestants/engines/holdfast.ts")).onMysql,
    "get-lock": async () => (await import("../contestants/engines/mysql.ts")).getLock,
    "mysql-poller": async () => (await import("../contestants/engines/mysql.ts")).mysqlPoller,
  },
  etcd: {
    holdfast: async () => (await import("../contestants/engines/holdfast.ts")).onEtcd,
    "lock-rpc": async () => (await import("../contestants/engines/etcd.ts")).lockRpc,
    "lock-rpc-own-lease": async () => (await import("../contestants/engines/etcd.ts")).lockRpcOwnLease,
  },
  zookeeper: {
    holdfast: async () => (await import("../contestants/engines/holdfast.ts")).onZooKeeper,
  },
};
