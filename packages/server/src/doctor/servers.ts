import { readFileSync } from "node:fs";

import { Redis, type RedisOptions } from "ioredis";

import type { DoctorTarget } from "./url.ts";

/** A connection to one server, separate from the library's connections. */
export interface Server {
  readonly name: string;
  readonly host: string;
  readonly client: Redis;
}

type Options = Omit<RedisOptions, "protocol" | "replyMapping">;

const connectTimeoutMs = 3_000;
const commandTimeoutMs = 3_000;

/** Connects to a server of a deployment. The first failure is final, and becomes a finding. */
export function openServer(
  address: DoctorTarget,
  { host, port, path }: DoctorTarget["endpoints"][number],
): Server {
  const client = new Redis({
    ...optionsOf(address),
    ...(path === undefined ? { host, port } : { path }),
  } as Options);
  return opened(path ?? `${host}:${port}`, host, client);
}

/** Connects to a sentinel. */
export function openSentinel(
  address: DoctorTarget,
  { host, port }: DoctorTarget["endpoints"][number],
): Server {
  const { query } = address;
  const client = new Redis({
    ...optionsOf(address),
    db: 0,
    username: query.get("sentinelUsername") ?? undefined,
    password: query.get("sentinelPassword") ?? undefined,
    host,
    port,
  } as Options);
  return opened(`sentinel ${host}:${port}`, host, client);
}

/** Whether the host is this machine, so no network can read or change the traffic. */
export function isLoopback(host: string): boolean {
  return host === "" || host === "localhost" || host === "::1" || host.startsWith("127.");
}

function opened(name: string, host: string, client: Redis): Server {
  client.on("error", () => undefined);
  return { name, host, client };
}

/** ioredis accepts undefined options as its defaults, although its types refuse them. */
function optionsOf(address: DoctorTarget): object {
  const { username, password, database, isEncrypted } = address;
  return {
    username,
    password,
    db: database,
    lazyConnect: true,
    enableReadyCheck: false,
    enableOfflineQueue: true,
    connectTimeout: connectTimeoutMs,
    commandTimeout: commandTimeoutMs,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    disableClientInfo: true,
    ...(isEncrypted && { tls: tlsOf(address) }),
  };
}

function tlsOf({ query }: DoctorTarget): object {
  const file = (name: string): Buffer | undefined => {
    const path = query.get(name);
    return path === null ? undefined : readFileSync(path);
  };
  return {
    ca: file("tlsCaFile"),
    cert: file("tlsCertFile"),
    key: file("tlsKeyFile"),
    ...(query.has("tlsServername") && { servername: query.get("tlsServername") as string }),
    rejectUnauthorized: query.get("tlsVerify") !== "false",
  };
}
