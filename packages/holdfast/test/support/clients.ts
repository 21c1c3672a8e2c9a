import { GlideClient, Logger } from "@valkey/valkey-glide";
import { Redis as Ioredis6 } from "ioredis";
import { Redis as Ioredis5 } from "ioredis5";
import { Redis as Iovalkey } from "iovalkey";
import { createClient as createClient6 } from "redis";
import { createClient as createClient4 } from "redis4";
import { createClient as createClient5 } from "redis5";

import type { RedisClient } from "holdfast/redis";

Logger.setLoggerConfig("off"); // by default GLIDE prints each error of a server

/** A connected client, as a user creates it. */
export interface OpenClient {
  readonly client: RedisClient;
  /** Names the connection at the server, and returns its id there. */
  id(): Promise<number>;
  close(): void;
}

export interface ClientOptions {
  readonly database?: number;
  /** Of ioredis only. */
  readonly keyPrefix?: string;
  /** The name of its connections at the server, including duplicated connections. */
  readonly name?: string;
}

/** Every client library that is supported, by its name and major version. */
export const clientLibraries: Readonly<Record<ClientLibrary, OpenLibrary>> = {
  "ioredis 6": async (port, options) => {
    const client = new Ioredis6(ioredisOptions(port, options));
    client.on("error", ignore);
    return open(
      client,
      () => client.client("ID"),
      () => client.disconnect(),
    );
  },
  "ioredis 5": async (port, options) => {
    const client = new Ioredis5(ioredisOptions(port, options));
    client.on("error", ignore);
    return open(
      client,
      () => client.client("ID"),
      () => client.disconnect(),
    );
  },
  iovalkey: async (port, options) => {
    const client = new Iovalkey(ioredisOptions(port, options));
    client.on("error", ignore);
    return open(
      client,
      () => client.client("ID"),
      () => client.disconnect(),
    );
  },
  "node-redis 6": async (port, options) => {
    const client = createClient6(nodeRedisOptions(port, options)).on("error", ignore);
    await client.connect();
    return open(
      client,
      () => client.clientId(),
      () => client.destroy(),
    );
  },
  "node-redis 5": async (port, options) => {
    const client = createClient5(nodeRedisOptions(port, options)).on("error", ignore);
    await client.connect();
    return open(
      client,
      () => client.clientId(),
      () => client.destroy(),
    );
  },
  "node-redis 4": async (port, options) => {
    const client = createClient4(nodeRedisOptions(port, options)).on("error", ignore);
    await client.connect();
    return open(
      client,
      () => client.clientId(),
      () => void client.disconnect().catch(ignore),
    );
  },
  "Valkey GLIDE 2": async (port, { database = 0, name = "" } = {}) => {
    const client = await GlideClient.createClient({
      addresses: [{ host: "127.0.0.1", port }],
      databaseId: database,
      clientName: name,
    });
    return open(
      client,
      () => client.clientId(),
      () => client.close(),
    );
  },
};

export type ClientLibrary = `ioredis ${5 | 6}` | `node-redis ${4 | 5 | 6}` | "iovalkey" | "Valkey GLIDE 2";
export type OpenLibrary = (port: number, options?: ClientOptions) => Promise<OpenClient>;

function open(client: RedisClient, id: () => Promise<number>, close: () => void): OpenClient {
  return { client, id, close };
}

function ignore(): void {
  // The affected commands report the errors of a connection.
}

function ioredisOptions(
  port: number,
  { database = 0, keyPrefix = "", name = "" }: ClientOptions = {},
): { host: string; port: number; db: number; keyPrefix: string; connectionName: string } {
  return { host: "127.0.0.1", port, db: database, keyPrefix, connectionName: name };
}

function nodeRedisOptions(
  port: number,
  { database = 0, name = "" }: ClientOptions = {},
): { socket: { host: string; port: number }; database: number; name: string } {
  return { socket: { host: "127.0.0.1", port }, database, name };
}
