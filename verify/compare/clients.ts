import { Redis, type RedisOptions } from "ioredis5";

/**
 * The client that every library gets, each with the same options: ioredis 5, which all of them support. Untyped, because the
 * types of some come from another version of ioredis, although the client fits.
 */
export type Client = any;

export function connect(port: number, options: RedisOptions = {}): Client {
  const client = new Redis(port, "127.0.0.1", options);
  client.on("error", () => undefined);
  return client;
}
