import type { ChannelKind } from "./connection.ts";

/** One connection of Holdfast to one node of a cluster. A connection that ended is not opened again. */
export interface NodeConnection {
  send(name: string, args: string[]): Promise<unknown>;
  subscribe(channel: string, kind: ChannelKind): Promise<unknown>;
  unsubscribe(channel: string, kind: ChannelKind): void;
  close(): void;
}

export interface NodeConnectionListener {
  message(channel: string, text: string): void;
  /** The server ended a subscription, because the slot of its channel has moved. */
  dropped(): void;
  ended(): void;
}

/**
 * The client of a cluster, as Holdfast needs it: the known nodes, and how to connect to a node.
 *
 * Holdfast itself maintains the map of slots and the subscriptions. Some client libraries notice a failover only by chance, and none
 * notices an unresponsive node.
 */
export interface ClusterClient {
  /** The prefix that the client library adds to every key. */
  readonly keyPrefix: string;
  /** The nodes that the client knows, as host:port. Throws if the client is closed. */
  known(): readonly string[];
  /** Resolves when the connection can send commands. */
  open(address: string, listener: NodeConnectionListener): Promise<NodeConnection>;
}

/** Host and port of `host:port`; the host may be an IPv6 address. */
export function splitAddress(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(":");
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}
