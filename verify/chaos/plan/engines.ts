import { etcdCluster, oneEtcd, oneZooKeeper, zooKeeperEnsemble } from "./consensus-engines.ts";
import { mysqlServer, postgresServer } from "./database-engines.ts";
import type { Engine } from "./engine.ts";
import type { EngineName } from "./plan.ts";
import { cluster, oneServer, quorum, sentinel } from "./redis-engines.ts";

export const engines: Readonly<Record<EngineName, Engine>> = {
  redis: oneServer,
  redlock: quorum,
  sentinel,
  cluster,
  postgres: postgresServer,
  mysql: mysqlServer,
  etcd: oneEtcd,
  "etcd-cluster": etcdCluster,
  zookeeper: oneZooKeeper,
  "zookeeper-ensemble": zooKeeperEnsemble,
};
