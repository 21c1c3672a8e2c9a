import type {
  ChannelKind,
  CommandConnection,
  Connection,
  Subscription,
  SubscriptionListener,
} from "./connection.ts";
import { NodeRedisConnection, prefixOf, type NodeRedisClient } from "./node-redis.ts";
import type { Script } from "../protocol/script.ts";

/** The members of a node-redis Sentinel client (5 and 6) that Holdfast uses. */
export interface NodeRedisSentinelClient {
  /**
   * Calls `work` with the client of the primary, when it is connected. If the work fails with READONLY, it requests the primary from
   * the sentinels again and repeats the work.
   */
  _execute<T>(isReadonly: boolean | undefined, work: (client: NodeRedisClient) => Promise<T>): Promise<T>;
  /** Present in version 6. */
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
 * The connection to a primary that sentinels name. The client is a pool, and repeats commands without an error. So Holdfast sends by the
 * pool's connection to the primary, in order and once. If the client changes to another primary, commands and subscriptions follow.
 */
export class NodeRedisSentinelConnection implements Connection {
  readonly keyPrefix: string;
  readonly #client: NodeRedisSentinelClient;
  readonly #downListeners = new Set<() => void>();
  readonly #subscriptions = new Set<FollowingSubscription>();
  #finding: Promise<Primary> | undefined;
  #primary: Primary | undefined;
  /** The last primary, if it did not reply or replied as a replica. */
  #rejected: NodeRedisClient | undefined;

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
      add: (added) => subscription.add(added),
      remove: (removed) => subscription.remove(removed),
    };
  }

  dedicatedConnection(): CommandConnection {
    const listeners = new Set<() => void>();
    const down = (): void => {
      for (const listener of listeners) {
        listener();
      }
    };
    const stopListening = this.onDown(down); // the connection may lead to another server then
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
      this.#rejected = client; // if the client is not ready, it looks for the primary itself
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
      this.#dropPrimary(); // its `reconnectStrategy` has ended, and the pool opens another connection on request
    }
    if (!this.#finding) {
      const finding = this.#requestPrimary();
      this.#finding = finding;
      finding.then(
        (primary) => {
          if (this.#finding === finding) {
            this.#primary = primary;
          } else {
            primary.forget(); // the primary changed during the request
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

  async #requestPrimary(): Promise<Primary> {
    const client = await this.#client._execute(false, (found) => {
      if (found === this.#rejected) {
        this.#rejected = undefined;
        // The error starts with READONLY, because node-redis then requests the primary from the sentinels again.
        throw new Error("READONLY: the server is a replica now, or does not reply");
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

/** A subscription on the present primary. */
class FollowingSubscription {
  readonly #find: () => Promise<NodeRedisConnection>;
  readonly #channel: string;
  readonly #kind: ChannelKind;
  readonly #listener: SubscriptionListener;
  readonly #added = new Set<string>();
  #current: Subscription | undefined;
  /** Counts the primaries, because the connection to a former primary may report its end later. */
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

  /** Ends the subscription, and subscribes on the present primary. */
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
          const listener = this.#listenerFor(current);
          const subscription = connection.subscribe(this.#channel, this.#kind, listener);
          this.#current = subscription;
          for (const channel of this.#added) {
            subscription.add?.(channel).then(
              () => listener.connected(),
              () => undefined,
            );
          }
        }
      },
      () => {
        if (current()) {
          this.#listener.disconnected();
        }
      },
    );
  }

  async add(channel: string): Promise<boolean> {
    this.#added.add(channel);
    return (await this.#current?.add?.(channel)) ?? false;
  }

  remove(channel: string): void {
    this.#added.delete(channel);
    this.#current?.remove?.(channel);
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
      message: (text, channel) => {
        if (isCurrent()) {
          listener.message(text, channel);
        }
      },
    };
  }
}
