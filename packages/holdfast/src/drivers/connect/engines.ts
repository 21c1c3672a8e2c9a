import type { Driver } from "../../driver.ts";

/** Opens a driver. Rejects with a `TypeError` or `RangeError` for an invalid URL or option. No error contains a secret of the URL. */
type EngineOpener = (url: string, options: object) => Promise<Driver>;

/** The engines with their own drivers, by the schemes of their URLs. The code of an engine is loaded only for its URLs. */
const engines: Readonly<Record<string, () => Promise<EngineOpener>>> = {
  mariadb: async () => (await import("./mysql.ts")).connectMysql,
  mysql: async () => (await import("./mysql.ts")).connectMysql,
  postgres: async () => (await import("./postgres.ts")).connectPostgres,
  postgresql: async () => (await import("./postgres.ts")).connectPostgres,
  etcd: async () => (await import("./etcd.ts")).connectEtcd,
  etcds: async () => (await import("./etcd.ts")).connectEtcd,
  nacos: async () => (await import("./nacos.ts")).connectNacos,
  nacoss: async () => (await import("./nacos.ts")).connectNacos,
  zookeeper: async () => (await import("./zookeeper.ts")).connectZooKeeper,
};

export const engineSchemes: readonly string[] = Object.keys(engines);

/** Opens the driver for a URL of these engines; undefined for another URL. */
export function connectEngine(url: string | URL, options: object): Promise<Driver> | undefined {
  const text = String(url);
  const [, scheme = ""] = /^([a-z][a-z0-9+.-]*):/i.exec(text) ?? [];
  const load = Object.hasOwn(engines, scheme.toLowerCase()) ? engines[scheme.toLowerCase()] : undefined;
  return load?.().then((open) => open(text, options));
}
