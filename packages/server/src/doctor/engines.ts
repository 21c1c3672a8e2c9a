import type { Finding } from "./finding.ts";

/** The servers of a URL, and what the checks found. */
interface Examination {
  readonly nodes: readonly string[];
  readonly findings: readonly Finding[];
}

/** How the locks are used, and whether the checks may write. */
interface Use {
  readonly ttlMs: number;
  /** Present: the checks may write. */
  readonly probe?: object | undefined;
  /** The token of a lock service, if its URL has none. */
  readonly token?: string | undefined;
}

/** Checks the servers of a URL. Throws an `UnreachableError` if no server replies. */
export type EngineDoctor = (url: string, use: Use) => Promise<Examination>;

/** The checks of each engine but Redis, by the schemes of their URLs. The code of an engine is loaded only for its URLs. */
const engines: Readonly<Record<string, () => Promise<EngineDoctor>>> = {
  etcd: async () => (await import("./engines/etcd.ts")).examineEtcd,
  etcds: async () => (await import("./engines/etcd.ts")).examineEtcd,
  http: async () => (await import("./engines/service.ts")).examineService,
  https: async () => (await import("./engines/service.ts")).examineService,
  mariadb: async () => (await import("./engines/mysql.ts")).examineMysql,
  mysql: async () => (await import("./engines/mysql.ts")).examineMysql,
  nacos: async () => (await import("./engines/nacos.ts")).examineNacos,
  nacoss: async () => (await import("./engines/nacos.ts")).examineNacos,
  postgres: async () => (await import("./engines/postgres.ts")).examinePostgres,
  postgresql: async () => (await import("./engines/postgres.ts")).examinePostgres,
  zookeeper: async () => (await import("./engines/zookeeper.ts")).examineZooKeeper,
};

/** The name of the engine and its checks; undefined for a URL of Redis. */
export function engineDoctorOf(
  url: string,
): { readonly name: string; readonly load: () => Promise<EngineDoctor> } | undefined {
  const name = url.slice(0, Math.max(0, url.indexOf(":"))).toLowerCase();
  const load = Object.hasOwn(engines, name) ? engines[name] : undefined;
  return load && { name: name.startsWith("http") ? "service" : name, load };
}
