import type { ChannelKind } from "./connection.ts";
import { prefixOf, assertPassword } from "./node-redis.ts";
import {
  splitAddress,
  type ClusterClient,
  type NodeConnection,
  type NodeConnectionListener,
} from "./cluster-client.ts";

/** The members of a node-redis cluster (4, 5 and 6) that Holdfast uses. */
export interface NodeRedisClusterClient {
  readonly slots: readonly unknown[];
  readonly masters: readonly object[];
  readonly nodeByAddress: ReadonlyMap<string, object>;
  nodeClient(node: never): unknown;
  /** Present in versions 5 and 6. */
  readonly _options?: { readonly nodeAddressMap?: unknown };
  /** Present in version 6. */
  readonly _keyPrefix?: string | Uint8Array | undefined;
}

/** The members of a node's client that Holdfast uses. */
interface NodeClient {
  readonly options?: { readonly socket?: object; readonly username?: string; readonly password?: string };
  duplicate(override: object): NodeClient;
  connect(): Promise<unknown>;
  sendCommand(args: string[]): Promise<unknown>;
  subscribe(channel: string, listener: (text: string, channel: string) => void): Promise<unknown>;
  sSubscribe(channel: string, listener: (text: string, channel: string) => void): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  sUnsubscribe(channel: string): Promise<unknown>;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  unref?(): void;
  destroy?(): void;
  disconnect(): Promise<unknown>;
}

type AddressMap = Readonly<Record<string, object>> | ((address: string) => object | undefined) | undefined;

interface ClusterNode {
  /** In node-redis 4 a promise, while the node is connecting. */
  readonly client?: object;
}

export function isNodeRedisCluster(client: object): client is NodeRedisClusterClient {
  return "slots" in client && "nodeByAddress" in client && "nodeClient" in client;
}

export class NodeRedisCluster implements ClusterClient {
  /** Present in version 6. node-redis adds the prefix only to its own commands, and Holdfast sends raw commands. */
  readonly keyPrefix: string;
  readonly #client: NodeRedisClusterClient;

  constructor(client: NodeRedisClusterClient) {
    this.#client = client;
    this.keyPrefix = prefixOf({ keyPrefix: client._keyPrefix });
  }

  known(): readonly string[] {
    return Array.from(this.#client.nodeByAddress.keys());
  }

  async open(address: string, listener: NodeConnectionListener): Promise<NodeConnection> {
    const own = this.#client.nodeByAddress.get(address) as ClusterNode | undefined;
    const template = clientOf(own) ?? (await this.#anyClient());
    assertPassword(template.options);
    const entry = template === clientOf(own) ? {} : this.#placeOf(address); // the template of a known node has its address already
    const client = template.duplicate({
      socket: { ...template.options?.socket, ...entry, reconnectStrategy: false },
      readonly: false,
      disableOfflineQueue: true,
    });
    return connect(client, listener);
  }

  #placeOf(address: string): object {
    const map = this.#client._options?.nodeAddressMap as AddressMap;
    const mapped = typeof map === "function" ? map(address) : map?.[address];
    return mapped ?? splitAddress(address);
  }

  async #anyClient(): Promise<NodeClient> {
    const masters = this.#client.masters as readonly ClusterNode[];
    const client = masters.map(clientOf).find((found) => found !== undefined);
    if (client) {
      return client;
    } else if (!masters[0]) {
      throw new Error("The cluster client is not connected");
    }
    return (await this.#client.nodeClient(masters[0] as never)) as NodeClient;
  }
}

/** The client of a node that is connected or connecting. */
function clientOf(node: ClusterNode | undefined): NodeClient | undefined {
  const client = node?.client;
  return client !== undefined && "duplicate" in client ? (client as NodeClient) : undefined;
}

async function connect(client: NodeClient, listener: NodeConnectionListener): Promise<NodeConnection> {
  let isConnected = false;
  let hasEnded = false;
  const ended = (): void => {
    if (isConnected && !hasEnded) {
      hasEnded = true;
      listener.ended();
      end(client);
    }
  };
  client.on("error", ended); // without this listener node-redis ends the process
  client.on("end", ended);
  client.on("sharded-channel-moved", () => listener.dropped());
  await client.connect();
  isConnected = true;
  client.unref?.();
  return new NodeRedisNodeConnection(client, listener);
}

class NodeRedisNodeConnection implements NodeConnection {
  readonly #client: NodeClient;
  readonly #onMessage: (text: string, channel: string) => void;

  constructor(client: NodeClient, listener: NodeConnectionListener) {
    this.#client = client;
    this.#onMessage = (text, channel) => listener.message(channel, text);
  }

  send(name: string, args: string[]): Promise<unknown> {
    return this.#client.sendCommand([name, ...args]);
  }

  subscribe(channel: string, kind: ChannelKind): Promise<unknown> {
    return kind === "sharded"
      ? this.#client.sSubscribe(channel, this.#onMessage)
      : this.#client.subscribe(channel, this.#onMessage);
  }

  unsubscribe(channel: string, kind: ChannelKind): void {
    const done = kind === "sharded" ? this.#client.sUnsubscribe(channel) : this.#client.unsubscribe(channel);
    done.catch(() => undefined);
  }

  close(): void {
    end(this.#client);
  }
}

function end(client: NodeClient): void {
  try {
    if (client.destroy) {
      client.destroy();
    } else {
      client.disconnect().catch(() => undefined);
    }
  } catch {
    // The client was closed already.
  }
}
