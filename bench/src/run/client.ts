import { Redis } from "ioredis";

/**
 * The client that every contestant gets. It has no type, because a peer's types may come from another version of ioredis. These
 * types do not match, although the clients work.
 */
export function connect(port: number): any {
  return new Redis(port, "127.0.0.1");
}

/**
 * One client for each node of a quorum. Commands for a node that is down fail immediately. With the defaults of ioredis they would
 * wait ten seconds for the node, and so would every library that waits for all nodes.
 */
export async function connectAll(ports: readonly number[]): Promise<any[]> {
  return Promise.all(
    ports.map(async (port) => {
      const client = new Redis(port, "127.0.0.1", { enableOfflineQueue: false });
      client.on("error", () => {});
      await new Promise((resolve) => client.once("ready", resolve).once("close", resolve));
      return client;
    }),
  );
}
