export {
  hasEtcd,
  startEtcd,
  startEtcdCluster,
  type EtcdCluster,
  type EtcdMember,
  type EtcdServer,
} from "./etcd-server.ts";
export { hasGalera, startGalera, type GaleraCluster } from "./galera-cluster.ts";
export { hasMariaDb, startMariaDb, type MariaDbServer } from "./mariadb-server.ts";
export { hasPgBouncer, startPgBouncer, type PgBouncer, type PgBouncerOptions } from "./pgbouncer-server.ts";
export { hasPostgres, startPostgres, startStandby, type PostgresServer } from "./postgres-server.ts";
export { hasS3, startS3, type S3Server } from "./s3-server.ts";
export { hasZooKeeper, startEnsemble, startZooKeeper, type ZooKeeperServer } from "./zookeeper-server.ts";
