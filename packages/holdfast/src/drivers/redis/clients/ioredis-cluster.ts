import type { ChannelKind } from "./connection.ts";
import {
  splitAddress,
  type ClusterClient,
  type NodeConnection,
  type NodeConnectionListener,
} from "./cluster-client.ts";

/** The members of an ioredis `Cluster` (5 and 6) that Holdfast uses. */
export interface IoredisClusterClient {
  readonly isCluster: boolean;
  readonly options: object;
  readonly status: string;
  connect(): Promise<void>;
  nodes(role?: "all"): readonly object[];
}

interface ClusterOptions {
  readonly keyPrefix?: string;
  readonly natMap?: Readonly<Record<string, Address>> | ((key: string) => Address | null | undefined) | null;
}

interface Address {
  readonly host: string;
  readonly port: number;
}

/** The members of a node's client that Holdfast uses. */
interface NodeClient {
  readonly options: Address;
  readonly stream?: { unref?: () => void; destroy?: () => void };
  duplicate(override: object): NodeClient;
  connect(): Promise<unknown>;
  call(command: string, args: string[]): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  ssubscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  sunsubscribe(channel: string): Promise<unknown>;
  disconnect(): void;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
}

export function isIoredisCluster(client: object): client is IoredisClusterClient {
  return "isCluster" in client && client.isCluster === true && "nodes" in client;
}

export class IoredisCluster implements ClusterClient {
  readonly keyPrefix: string;
  readonly #client: IoredisClusterClient;

  constructor(client: IoredisClusterClient) {
    this.#client = client;
    this.keyPrefix = (client.options as ClusterOptions).keyPrefix ?? "";
  }

  known(): readonly string[] {
    return this.#nodes().map(({ options: { host, port } }) => `${host}:${port}`);
  }

  async open(address: string, listener: NodeConnectionListener): Promise<NodeConnection> {
    const [template] = this.#nodes();
    if (!template) {
      throw new Error("The cluster client is not connected");
    }
    const client = template.duplicate({ ...this.#natMapped(address), ...ownOptions });
    let isOpen = false;
    client.on("error", (error) => {
      if (isOpen && String(error).includes("queue state")) {
        listener.dropped(); // ioredis 5 reports an unexpected `sunsubscribe` as an error
      }
    });
    client.on("moved", () => {
      listener.dropped(); // ioredis 6
    });
    client.on("end", () => {
      if (isOpen) {
        listener.ended();
      }
    });
    for (const event of ["message", "smessage"]) {
      client.on(event, (channel, text) => listener.message(String(channel), String(text)));
    }
    await client.connect();
    isOpen = true;
    client.stream?.unref?.();
    return new IoredisNodeConnection(client);
  }

  #nodes(): NodeClient[] {
    const { status } = this.#client;
    if (status === "end") {
      throw new Error("The cluster client is closed");
    }
    if (status === "wait") {
      this.#client.connect().catch(() => undefined); // the client has `lazyConnect`, and the next attempt finds its nodes
    }
    return this.#client.nodes("all") as NodeClient[];
  }

  #natMapped(address: string): Address {
    const { natMap } = this.#client.options as ClusterOptions;
    const mapped = typeof natMap === "function" ? natMap(address) : natMap?.[address];
    return mapped ?? splitAddress(address);
  }
}

/** The connections of Holdfast never reconnect, queue no commands, and repeat none. */
const ownOptions = {
  keyPrefix: "",
  readOnly: false,
  lazyConnect: true,
  autoResubscribe: false,
  autoResendUnfulfilledCommands: false,
  enableAutoPipelining: false,
  enableOfflineQueue: false,
  commandTimeout: undefined,
  socketTimeout: undefined,
  maxRetriesPerRequest: null,
  retryStrategy: (): null => null,
};

class IoredisNodeConnection implements NodeConnection {
  readonly #client: NodeClient;

  constructor(client: NodeClient) {
    this.#client = client;
  }

  send(name: string, args: string[]): Promise<unknown> {
    return this.#client.call(name, args);
  }

  subscribe(channel: string, kind: ChannelKind): Promise<unknown> {
    return kind === "sharded" ? this.#client.ssubscribe(channel) : this.#client.subscribe(channel);
  }

  unsubscribe(channel: string, kind: ChannelKind): void {
    const done = kind === "sharded" ? this.#client.sunsubscribe(channel) : this.#client.unsubscribe(channel);
    done.catch(() => undefined);
  }

  close(): void {
    this.#client.disconnect();
    this.#client.stream?.destroy?.(); // otherwise the client waits until an unresponsive server ends the connection
  }
}
