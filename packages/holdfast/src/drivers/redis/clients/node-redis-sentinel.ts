import type {
  ChannelKind,
  CommandConnection,
  Connection,
  Subscription,
  SubscriptionListener,
} from "./connection.ts";
import { NodeRedisConnection, prefixOf, type NodeRedisClient } from "./node-redis.ts";
import type { Script } from "../protocol/script.ts";

/** What we use of a node-redis Sentinel client (5 and 6). */
export interface NodeRedisSentinelClient {
  /**
   * Gives the work its client of the primary, once it has one. Where the work fails with READONLY, it asks the sentinels again who
   * that is, and repeats the work.
   */
  _execute<T>(isReadonly: boolean | undefined, work: (client: NodeRedisClient) => Promise<T>): Promise<T>;
  /** Of version 6. */
  readonly _keyPrefix?: string | Uint8Array | undefined;
  getMasterNode(): { readonly host: string; readonly port: number } | undefined;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

interface Primary {
  readonly client: NodeRedisClient;
  readonly connection: NodeRedisConnection;
  dedicatedConnection?: CommandConnection;
  readonly forget: () => void;
}

export function isNodeRedisSentinel(client: object): client is NodeRedisSentinelClient {
  return "_execute" in client && "getMasterNode" in client && "use" in client;
}

/**
 * By sentinels. The client is a pool, and sends a command again without a word. So we ask it for its connection to the primary and
 * send by that one, in order and once; whenever the client goes to another primary, we go with it, and so do the subscriptions.
 */
export class NodeRedisSentinelConnection implements Connection {
  readonly keyPrefix: string;
  readonly #client: NodeRedisSentinelClient;
  readonly #downListeners = new Set<() => void>();
  readonly #subscriptions = new Set<FollowingSubscription>();
  #finding: Promise<Primary> | undefined;
  #primary: Primary | undefined;
  #suspected: NodeRedisClient | undefined;

  constructor(client: NodeRedisSentinelClient) {
    this.#client = client;
    this.keyPrefix = prefixOf({ keyPrefix: client._keyPrefix });
    client.on("topology-change", this.#changed);
  }

  get name(): string {
    const node = this.#client.getMasterNode();
    return node ? `sentinel:${node.host}:${node.port}` : "sentinel";
  }

  async run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const { connection } = await this.#find();
    return connection.run(script, keys, args);
  }

  async command(name: string, args: readonly string[]): Promise<unknown> {
    const { connection } = await this.#find();
    return connection.command(name, args);
  }

  onDown(listener: () => void): () => void {
    this.#downListeners.add(listener);
    return () => this.#downListeners.delete(listener);
  }

  subscribe(channel: string, kind: ChannelKind, listener: SubscriptionListener): Subscription {
    const find = async (): Promise<NodeRedisConnection> => (await this.#find()).connection;
    const subscription = new FollowingSubscription(find, channel, kind, listener);
    this.#subscriptions.add(subscription);
    subscription.follow();
    return {
      close: () => {
        this.#subscriptions.delete(subscription);
        subscription.close();
      },
    };
  }

  dedicatedConnection(): CommandConnection {
    const listeners = new Set<() => void>();
    const down = (): void => {
      for (const listener of listeners) {
        listener();
      }
    };
    const stopListening = this.onDown(down); // it may lead to another server then
    const dedicated = async (): Promise<CommandConnection> => {
      const primary = await this.#find();
      if (!primary.dedicatedConnection) {
        primary.dedicatedConnection = primary.connection.dedicatedConnection();
        primary.dedicatedConnection.onDown(down);
      }
      return primary.dedicatedConnection;
    };
    return {
      run: async (script, keys, args) => (await dedicated()).run(script, keys, args),
      command: async (name, args) => (await dedicated()).command(name, args),
      onDown: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      close: () => {
        stopListening();
        this.#primary?.dedicatedConnection?.close();
      },
    };
  }

  refreshPrimary(): void {
    const client = this.#primary?.client;
    if (client?.isReady === true) {
      this.#suspected = client; // else the client itself looks already
      this.#dropPrimary();
    }
  }

  close(): void {
    this.#client.off("topology-change", this.#changed);
    this.#primary?.forget();
  }

  readonly #changed = (event: unknown): void => {
    if ((event as { readonly type?: unknown }).type === "MASTER_CHANGE") {
      this.#dropPrimary();
    }
  };

  readonly #down = (): void => {
    for (const listener of this.#downListeners) {
      listener();
    }
  };

  #dropPrimary(): void {
    const wasKnown = this.#finding !== undefined;
    this.#primary?.forget();
    this.#primary = undefined;
    this.#finding = undefined;
    if (wasKnown) {
      this.#down();
      for (const subscription of this.#subscriptions) {
        subscription.follow();
      }
    }
  }

  #find(): Promise<Primary> {
    if (this.#primary?.client.isOpen === false) {
      this.#dropPrimary(); // its `reconnectStrategy` has given up: the client makes another when it is asked for one
    }
    if (!this.#finding) {
      const finding = this.#ask();
      this.#finding = finding;
      finding.then(
        (primary) => {
          if (this.#finding === finding) {
            this.#primary = primary;
          } else {
            primary.forget(); // it changed meanwhile
          }
        },
        () => {
          if (this.#finding === finding) {
            this.#finding = undefined;
          }
        },
      );
    }
    return this.#finding;
  }

  async #ask(): Promise<Primary> {
    const client = await this.#client._execute(false, (found) => {
      if (found === this.#suspected) {
        this.#suspected = undefined;
        throw new Error("READONLY or silent: it may be no primary any more");
      }
      return Promise.resolve(found);
    });
    const connection = new NodeRedisConnection(client);
    const stopListening = connection.onDown(this.#down);
    const primary: Primary = {
      client,
      connection,
      forget: () => {
        stopListening();
        primary.dedicatedConnection?.close();
      },
    };
    return primary;
  }
}

/** A subscription at whichever server is the primary. */
class FollowingSubscription {
  readonly #find: () => Promise<NodeRedisConnection>;
  readonly #channel: string;
  readonly #kind: ChannelKind;
  readonly #listener: SubscriptionListener;
  #current: Subscription | undefined;
  /** Counts the primaries: one that was left may tell of its end later. */
  #generation = 0;

  constructor(
    find: () => Promise<NodeRedisConnection>,
    channel: string,
    kind: ChannelKind,
    listener: SubscriptionListener,
  ) {
    this.#find = find;
    this.#channel = channel;
    this.#kind = kind;
    this.#listener = listener;
  }

  /** Leaves the server where it is, and goes to the primary. */
  follow(): void {
    const wasOpen = this.#current !== undefined;
    this.close();
    if (wasOpen) {
      this.#listener.disconnected();
    }
    const generation = this.#generation;
    const current = (): boolean => generation === this.#generation;
    this.#find().then(
      (connection) => {
        if (current()) {
          this.#current = connection.subscribe(this.#channel, this.#kind, this.#listenerFor(current));
        }
      },
      () => {
        if (current()) {
          this.#listener.disconnected();
        }
      },
    );
  }

  close(): void {
    this.#generation += 1;
    this.#current?.close();
    this.#current = undefined;
  }

  #listenerFor(isCurrent: () => boolean): SubscriptionListener {
    const listener = this.#listener;
    return {
      connected: () => {
        if (isCurrent()) {
          listener.connected();
        }
      },
      disconnected: () => {
        if (isCurrent()) {
          listener.disconnected();
        }
      },
      message: (text) => {
        if (isCurrent()) {
          listener.message(text);
        }
      },
    };
  }
}
