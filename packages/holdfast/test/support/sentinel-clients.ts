import { Redis as Ioredis6 } from "ioredis";
import { Redis as Ioredis5 } from "ioredis5";
import { createSentinel as createSentinel6 } from "redis";
import { createSentinel as createSentinel5 } from "redis5";

import type { RedisClient } from "holdfast/redis";
import type { Sentinels } from "@holdfast/test-kit";

/** A client that finds its primary by sentinels, as a user creates it. */
export interface SentinelClient {
  readonly client: RedisClient;
  /** The connection of the user's own commands. */
  ping(): Promise<unknown>;
  close(): Promise<void>;
}

export type OpenSentinelClient = (lab: Sentinels) => Promise<SentinelClient>;

/** Every client library with sentinel support, by its name and major version. */
export const sentinelLibraries: Readonly<Record<string, OpenSentinelClient>> = {
  "ioredis 6": async (lab) => {
    const client = new Ioredis6(ioredisOptions(lab)).on("error", ignore);
    await client.ping();
    return { client, ping: () => client.ping(), close: async () => client.disconnect() };
  },
  "ioredis 5": async (lab) => {
    const client = new Ioredis5(ioredisOptions(lab)).on("error", ignore);
    await client.ping();
    return { client, ping: () => client.ping(), close: async () => client.disconnect() };
  },
  "node-redis 6": async (lab) => {
    const client = createSentinel6(nodeRedisOptions(lab)).on("error", ignore);
    await client.connect();
    return { client, ping: () => client.ping(), close: () => client.destroy() };
  },
  "node-redis 5": async (lab) => {
    const client = createSentinel5(nodeRedisOptions(lab)).on("error", ignore);
    await client.connect();
    return { client, ping: () => client.ping(), close: async () => client.destroy() };
  },
};

function ignore(): void {
  // The affected commands report the errors of a connection.
}

function ioredisOptions({ name, addresses }: Sentinels): {
  name: string;
  sentinels: { host: string; port: number }[];
} {
  return { name, sentinels: [...addresses] };
}

function nodeRedisOptions({ name, addresses }: Sentinels): {
  name: string;
  sentinelRootNodes: { host: string; port: number }[];
  nodeClientOptions: { socket: { reconnectStrategy: (retries: number) => number | Error } };
} {
  // Version 5 waits for a dead primary while this strategy retries.
  const reconnectStrategy = (retries: number): number | Error =>
    retries > 5 ? new Error("the primary is down") : 50;
  return { name, sentinelRootNodes: [...addresses], nodeClientOptions: { socket: { reconnectStrategy } } };
}
