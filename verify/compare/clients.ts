import { Redis, type RedisOptions } from "ioredis5";

/**
 * The ioredis 5 client that every library gets, with the same options. All libraries support ioredis 5. The client is untyped, because the
 * types of some libraries come from another version of ioredis.
 */
export type Client = any;

export function connect(port: number, options: RedisOptions = {}): Client {
  const client = new Redis(port, "127.0.0.1", options);
  client.on("error", () => undefined);
  return client;
}
