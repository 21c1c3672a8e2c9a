/** Every suite with its question, in the order in which they run. */
export const questions = {
  uncontended: "What does a lock cost without contention?",
  hot: "How often is a contended lock granted, and how long do its callers wait?",
  skew: "How does a lock perform if most callers use a few of many keys?",
  waiting: "What does it cost to wait for a lock that is never released?",
  renewals: "What does it cost to keep leases alive, and are they renewed in time?",
  takeover: "How long does a lock stay held after its holder was killed?",
  latency: "How many round trips does a lock take?",
  kinds: "What does each kind of lock cost without contention?",
  "read-write": "How much is gained if readers share a lock?",
  semaphore: "How often are the few permits of a contended semaphore granted?",
  memory: "How much memory do a lease, a waiter, and a key that was used once take?",
  churn: "Does memory grow while a million different keys are used in turn?",
  capacity: "Do the formulae of docs/capacity.md match the measurements?",
  service: "What does a lock cost over HTTP?",
  "command-line": "What does a lock add to the start of a command?",
  "redlock-uncontended": "What does a lock on a majority cost, with all nodes and with nodes down?",
  "redlock-hot": "How often is a contended lock on a majority granted, with all nodes and with nodes down?",
  "redlock-latency": "How many round trips does a lock on a majority take?",
  "postgres-uncontended": "What does a lock in PostgreSQL cost without contention?",
  "postgres-hot": "How often is a contended lock in PostgreSQL granted?",
  "mysql-uncontended": "What does a lock in MariaDB cost without contention?",
  "mysql-hot": "How often is a contended lock in MariaDB granted?",
  "etcd-uncontended": "What does a lock in etcd cost without contention?",
  "etcd-hot": "How often is a contended lock in etcd granted?",
  "zookeeper-uncontended": "What does a lock in ZooKeeper cost without contention?",
  "zookeeper-hot": "How often is a contended lock in ZooKeeper granted?",
} as const;

export type SuiteName = keyof typeof questions;

export const suiteNames: readonly SuiteName[] = Object.keys(questions) as SuiteName[];
