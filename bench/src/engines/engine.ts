/** The engines that are measured beside Redis. */
export const engines = ["postgres", "mysql", "etcd", "zookeeper"] as const;

export type Engine = (typeof engines)[number];

export function isEngine(name: string): name is Engine {
  return (engines as readonly string[]).includes(name);
}

export const engineTitles: Readonly<Record<Engine, string>> = {
  postgres: "PostgreSQL",
  mysql: "MariaDB",
  etcd: "etcd",
  zookeeper: "ZooKeeper",
};
