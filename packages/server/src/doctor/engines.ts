import type { Finding } from "./finding.ts";

/** The servers of a URL, and what the checks found. */
interface Examination {
  readonly nodes: readonly string[];
  readonly findings: readonly Finding[];
}

/** How the locks are used, and whether the checks may write. */
interface Use {
  readonly ttlMs: number;
  readonly probes: boolean;
}

/** Checks the servers of a URL. Throws an `UnreachableError` if no server replies. */
export type EngineDoctor = (url: string, use: Use) => Promise<Examination>;

/** The checks of the engines with their own drivers, by the schemes of their URLs. */
const engines: Readonly<Record<string, () => Promise<EngineDoctor>>> = {
  etcd: async () => (await import("./engines/etcd.ts")).examineEtcd,
  etcds: async () => (await import("./engines/etcd.ts")).examineEtcd,
  nacos: async () => (await import("./engines/nacos.ts")).examineNacos,
  nacoss: async () => (await import("./engines/nacos.ts")).examineNacos,
  postgres: async () => (await import("./engines/postgres.ts")).examinePostgres,
  postgresql: async () => (await import("./engines/postgres.ts")).examinePostgres,
  zookeeper: async () => (await import("./engines/zookeeper.ts")).examineZooKeeper,
};

/** The name of the engine and its checks; undefined for a URL of Redis or of a lock service. */
export function engineDoctorOf(
  url: string,
): { readonly name: string; readonly load: () => Promise<EngineDoctor> } | undefined {
  const name = url.slice(0, Math.max(0, url.indexOf(":"))).toLowerCase();
  const load = Object.hasOwn(engines, name) ? engines[name] : undefined;
  return load && { name, load };
}
