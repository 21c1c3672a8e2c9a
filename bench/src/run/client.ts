import { Redis } from "ioredis";

/**
 * The client that every contestant gets. Untyped, because a peer's types may come from another version of ioredis in this
 * workspace than ours, and the two do not fit, although the clients do.
 */
export function connect(port: number): any {
  return new Redis(port, "127.0.0.1");
}

/**
 * One for each node of a quorum, which may be down: then its commands fail at once. By ioredis's defaults they would wait for the
 * node for ten seconds, and so would every library that waits for all nodes.
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
