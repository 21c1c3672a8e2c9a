import type { ChannelKind } from "./connection.ts";

/** One connection of our own to one node of a cluster. It is not made again where it ends. */
export interface NodeConnection {
  send(name: string, args: string[]): Promise<unknown>;
  subscribe(channel: string, kind: ChannelKind): Promise<unknown>;
  unsubscribe(channel: string, kind: ChannelKind): void;
  close(): void;
}

export interface NodeConnectionListener {
  message(channel: string, text: string): void;
  /** The server ended a subscription: the slot of its channel is elsewhere now. */
  dropped(): void;
  ended(): void;
}

/**
 * All that Holdfast needs of a client of a cluster: where to begin, and how to reach a node. The rest, from the map of slots to
 * subscriptions, is ours: of the clients, some learn of a failover only by chance, and none of them of a node that is silent.
 */
export interface ClusterClient {
  /** What the client library puts before every key. */
  readonly keyPrefix: string;
  /** Nodes that the client knows, as host:port. Throws where it is closed. */
  known(): readonly string[];
  /** Resolves when commands can be sent. */
  open(address: string, listener: NodeConnectionListener): Promise<NodeConnection>;
}

/** Host and port of `host:port`; the host may be an IPv6 address. */
export function splitAddress(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(":");
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}
