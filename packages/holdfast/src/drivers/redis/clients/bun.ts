import {
  evalScript,
  type ChannelKind,
  type CommandConnection,
  type Connection,
  type Subscription,
  type SubscriptionListener,
} from "./connection.ts";
import { inDatabase } from "./database.ts";
import type { Script } from "../protocol/script.ts";

/** The members of a `RedisClient` of Bun that Holdfast uses. */
export interface BunRedisClient {
  readonly connected: boolean;
  onconnect: unknown;
  onclose: unknown;
  connect(): Promise<unknown>;
  close(): void;
  duplicate(): Promise<unknown>;
  send(command: string, args: string[]): Promise<unknown>;
  subscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
}

interface ConnectionEvents {
  /** The connection was lost and opened again, without its subscriptions. */
  readonly reconnected: (client: BunRedisClient) => void;
  /** The connection was lost, and Bun opens it no more. */
  readonly lost: (error: unknown) => void;
}

export function isBunRedis(client: object): client is BunRedisClient {
  return "onclose" in client && "send" in client && "duplicate" in client && "psubscribe" in client;
}

/**
 * Connections beside the user's client, because its events have one listener each, which is the user's. Bun receives the messages of plain
 * channels only.
 */
export class BunConnection implements Connection {
  readonly keyPrefix: string = "";
  readonly name: string = "Bun's RedisClient";
  readonly hasPlainChannelsOnly: boolean = true;
  readonly #client: BunRedisClient;
  readonly #commands: OwnConnection;
  readonly #listeners = new Set<() => void>();
  #database: number | undefined;
  #failure: unknown;

  constructor(client: BunRedisClient) {
    this.#client = client;
    const down = (error?: unknown): void => {
      this.#failure = error;
      for (const listener of this.#listeners) {
        listener();
      }
    };
    this.#commands = new OwnConnection(client, { reconnected: () => down(), lost: down });
  }

  async run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    this.#database ??= databaseIn(await this.#send("CLIENT", ["INFO"]));
    return evalScript(this.#send, inDatabase(script, this.#database), keys, args);
  }

  command(name: string, args: readonly string[]): Promise<unknown> {
    return this.#send(name, [...args]);
  }

  onDown(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  failure(): unknown {
    return this.#failure;
  }

  subscribe(channel: string, _kind: ChannelKind, listener: SubscriptionListener): Subscription {
    const channels = new Set([channel]);
    const onMessage = (text: string, from: string): void => listener.message(text, from);
    const down = (): void => listener.disconnected();
    const subscribe = async (client: BunRedisClient): Promise<void> => {
      await Promise.all(Array.from(channels, (each) => client.subscribe(each, onMessage)));
      listener.connected();
    };
    const own = new OwnConnection(this.#client, {
      reconnected: (client) => {
        down();
        subscribe(client).catch(down);
      },
      lost: down,
    });
    own.open().then(subscribe).catch(down);
    return {
      close: () => own.close(),
      add: async (added) => {
        channels.add(added);
        await (await own.open()).subscribe(added, onMessage);
        return true;
      },
      remove: (removed) => {
        channels.delete(removed);
        own
          .open()
          .then((client) => client.unsubscribe(removed))
          .catch(() => undefined);
      },
    };
  }

  dedicatedConnection(): CommandConnection {
    return new BunConnection(this.#client);
  }

  close(): void {
    this.#commands.close();
  }

  readonly #send = async (name: string, args: string[]): Promise<unknown> => {
    const reply = await (await this.#commands.open()).send(name, args);
    this.#failure = undefined;
    return reply;
  };
}

/** A connection with the settings of the user's client. It is opened at its first use, and again after its end. */
class OwnConnection {
  readonly #client: BunRedisClient;
  readonly #events: ConnectionEvents;
  #opening: Promise<BunRedisClient> | undefined;
  #isClosed = false;

  constructor(client: BunRedisClient, events: ConnectionEvents) {
    this.#client = client;
    this.#events = events;
  }

  open(): Promise<BunRedisClient> {
    if (this.#isClosed) {
      return Promise.reject(new Error("The connection is closed"));
    }
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  close(): void {
    this.#isClosed = true;
    this.#opening?.then((client) => client.close()).catch(() => undefined);
  }

  async #open(): Promise<BunRedisClient> {
    const client = (await this.#client.duplicate()) as BunRedisClient;
    if (!client.connected) {
      await client.connect();
    }
    client.onconnect = () => {
      if (!this.#isClosed) {
        this.#events.reconnected(client);
      }
    };
    client.onclose = (error: unknown) => {
      this.#opening = undefined;
      if (!this.#isClosed) {
        this.#events.lost(error);
      }
    };
    return client;
  }
}

function databaseIn(clientInfo: unknown): number {
  return Number(/\bdb=(\d+)/.exec(String(clientInfo))?.[1] ?? 0);
}
