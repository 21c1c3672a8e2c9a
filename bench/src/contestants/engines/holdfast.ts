import { createLocks, type Driver } from "holdfast";
import { etcd } from "holdfast/etcd";
import { mysql } from "holdfast/mysql";
import { postgres } from "holdfast/postgres";
import { zookeeper } from "holdfast/zookeeper";
import { createPool } from "mysql2/promise";
import type { Contestant } from "../contestant.ts";
import { mutex, sessionOf } from "../holdfast.ts";
import { poolOf, poolText } from "./postgres.ts";

export const onPostgres: Contestant<string> = holdfastOn(
  `PostgreSQL: a Pool of pg, ${poolText}, listen: true, waitMs Infinity`,
  (url) => postgres(poolOf(url), { listen: true }),
);

export const onMysql: Contestant<string> = holdfastOn(
  `MariaDB: a pool of mysql2, ${poolText}, waitMs Infinity`,
  (url) => mysql(createPool({ uri: url })),
);

export const onEtcd: Contestant<string> = holdfastOn("etcd: defaults, but waitMs Infinity", (url) =>
  etcd(url),
);

export const onZooKeeper: Contestant<string> = holdfastOn(
  "ZooKeeper: defaults, but waitMs Infinity",
  (address) => zookeeper(address),
);

function holdfastOn(settings: string, driverOf: (address: string) => Driver): Contestant<string> {
  return { settings, open: async (address) => sessionOf(mutex(createLocks(driverOf(address)))) };
}
