export {
  cacheFolder,
  debianProgram,
  debianServers,
  provideDebianServer,
  type DebianServerName,
} from "../debian-servers.mjs";
export { endProcess, hasEnded, readOutput } from "./child-process.ts";
export { makeCertificates, type Certificates } from "./certificates.ts";
export {
  startRedis,
  freePort,
  redisProgram,
  stablePort,
  type RedisServer,
  type ServerClientOptions,
  type ServerOptions,
} from "./redis-server.ts";
export { standaloneNodeArgs, startCluster, type ClusterOptions, type RedisCluster } from "./redis-cluster.ts";
export { startRestServer, type RestServer } from "./rest-server.ts";
export { startProxy, type Proxy } from "./proxy.ts";
export type { Direction, Flow } from "./proxied-connection.ts";
export { startSentinels, type SentinelOptions, type Sentinels } from "./sentinels.ts";
export { ServerClock, ServerClocks, startLongUp } from "./server-clock.ts";
export { joinedEnv } from "./shim.ts";
export { SyncedFiles } from "./synced-files.ts";
export { abortOf, block, rejection, waitUntil } from "./until.ts";
export { eventLimitMs, isThorough, limitMs, timeFactor } from "./time-limits.ts";
