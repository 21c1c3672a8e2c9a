import type { EventEmitter } from "node:events";

import {
  evalScript,
  handshakeFailure,
  type ChannelKind,
  type CommandConnection,
  type Connection,
  type Subscription,
  type SubscriptionListener,
} from "./connection.ts";
import { inDatabase } from "./database.ts";
import type { Script } from "../protocol/script.ts";

/** The members of an ioredis `Redis` (5 and 6) that Holdfast uses. A `Redis` of iovalkey has them too. */
export interface IoredisClient {
  readonly options: object;
  readonly status: string;
  duplicate(override?: object): IoredisClient;
  defineCommand(name: string, definition: { lua: string; numberOfKeys?: number }): void;
  call(command: string, args: string[]): Promise<unknown>;
  sendCommand(command: never): unknown;
  subscribe(...channels: string[]): Promise<unknown>;
  ssubscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  disconnect(reconnect?: boolean): void;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

export interface IoredisOptions {
  readonly keyPrefix?: unknown;
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly db?: number;
  readonly sentinels?: readonly { readonly host?: string; readonly port?: number }[] | null;
  readonly name?: string;
}

/** A client that Holdfast has created. */
export interface ConnectableClient extends IoredisClient {
  connect(): Promise<unknown>;
}

function pauseMs(times: number): number {
  return Math.min(times * 50, 2_000);
}

/** Subscribers, and connections that follow the primary, reconnect without limit, because a failed attempt has no cost for them. */
export const reconnects: object = {
  enableOfflineQueue: true,
  retryStrategy: pauseMs,
  sentinelRetryStrategy: pauseMs,
};

const subscriberOptions = {
  ...reconnects,
  keyPrefix: "", // a subscriber has no keys
  lazyConnect: false,
  autoResubscribe: false,
  maxRetriesPerRequest: null,
};

interface QueuedCommand {
  readonly name?: string;
  readonly args?: readonly unknown[];
}

/** The commands for which the server keeps a connection waiting. The two of streams do so with `BLOCK`. */
const blocking = /^(b[lrz].*|wait|waitaof)$/;

export function isIoredis(client: object): client is IoredisClient {
  return "defineCommand" in client && "ssubscribe" in client && typeof client.ssubscribe === "function";
}

export class IoredisConnection implements Connection {
  readonly keyPrefix: string;
  readonly name: string;
  readonly #client: IoredisClient;
  readonly #sender: Pick<IoredisClient, "call">;
  readonly #database: number;
  /** The connections in addition to the command connection. */
  readonly #others = new Set<IoredisClient>();
  /** Failed subscriptions since the last success. ioredis counts failures to connect only, and a proxy may end the connection at SUBSCRIBE. */
  #failedSubscriptions = 0;
  /** The sockets that are being ended, because an end may take some time. */
  readonly #orphaned = new WeakSet<object>();

  constructor(client: IoredisClient) {
    const { keyPrefix, db } = client.options as IoredisOptions;
    this.#client = client;
    this.#database = Number(db ?? 0);
    this.keyPrefix = keyPrefix === undefined || keyPrefix === null ? "" : String(keyPrefix as string);
    this.name = nameOf(client.options);
    this.#sender = withoutPrefix(client);
  }

  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return evalScript(this.#send, inDatabase(script, this.#database), keys, args);
  }

  command(name: string, args: readonly string[]): Promise<unknown> {
    return this.#send(name, [...args]);
  }

  onDown(listener: () => void): () => void {
    this.#client.on("close", listener);
    return () => this.#client.off("close", listener);
  }

  failure(): unknown {
    const { status, connector } = this.#client as IoredisClient & { connector?: { firstError?: unknown } };
    const error = status === "ready" ? undefined : connector?.firstError;
    const isIdle = status === "ready" || status === "wait" || status === "end";
    return isIdle && error === undefined ? undefined : handshakeFailure(error);
  }

  blockedBy(): string | undefined {
    const { commandQueue } = this.#client as { commandQueue?: { peekFront?(): { command?: QueuedCommand } } };
    const { name = "", args = [] } = commandQueue?.peekFront?.()?.command ?? {};
    const isBlocking = blocking.test(name) || (name.startsWith("xread") && /^block$/im.test(args.join("\n")));
    return isBlocking ? name.toUpperCase() : undefined;
  }

  subscribe(channel: string, kind: ChannelKind, listener: SubscriptionListener): Subscription {
    const subscriber = this.#client.duplicate({
      ...subscriberOptions,
      retryStrategy: (times: number) => pauseMs(Math.max(times, this.#failedSubscriptions)),
    });
    this.#others.add(subscriber);
    const channels = new Set([channel]);
    let isSubscribing = false;
    const subscribe = (): void => {
      isSubscribing = true;
      (subscriber as { stream?: { unref?: () => void } }).stream?.unref?.();
      const subscribed =
        kind === "sharded" ? subscriber.ssubscribe(channel) : subscriber.subscribe(...channels);
      subscribed.then(
        () => {
          isSubscribing = false;
          this.#failedSubscriptions = 0;
          listener.connected();
        },
        () => listener.disconnected(),
      );
    };
    subscriber.on("error", () => keepOverReconnects(subscriber));
    subscriber.on("ready", subscribe);
    subscriber.on("close", () => {
      this.#failedSubscriptions += isSubscribing ? 1 : 0;
      isSubscribing = false;
      listener.disconnected();
    });
    subscriber.on(kind === "sharded" ? "smessage" : "message", (from: unknown, text: unknown) => {
      listener.message(String(text), String(from));
    });
    const close = (): void => {
      this.#others.delete(subscriber);
      subscriber.disconnect();
    };
    this.#client.on("end", close);
    return {
      close: () => {
        this.#client.off("end", close);
        close();
      },
      add: async (added) => {
        channels.add(added);
        const isReady = subscriber.status === "ready";
        if (isReady) {
          await subscriber.subscribe(added);
        }
        return isReady;
      },
      remove: (removed) => {
        channels.delete(removed);
        if (subscriber.status === "ready") {
          subscriber.unsubscribe(removed).catch(() => undefined);
        }
      },
    };
  }

  dedicatedConnection(): CommandConnection {
    const client = this.#client.duplicate({ ...reconnects, lazyConnect: true }) as ConnectableClient;
    client.on("error", () => keepOverReconnects(client));
    this.#others.add(client);
    const connection = new IoredisConnection(client);
    let isClosed = false;
    /** If the user's client was ended and connected again, this client is connected again too. */
    const dedicated = (): IoredisConnection => {
      if (client.status === "end" && this.#client.status !== "end" && !isClosed) {
        client.connect().catch(() => undefined);
      }
      return connection;
    };
    const end = (): void => client.disconnect();
    this.#client.on("end", end);
    return {
      run: (script, keys, args) => dedicated().run(script, keys, args),
      command: (name, args) => dedicated().command(name, args),
      onDown: (listener) => connection.onDown(listener),
      close: () => {
        isClosed = true;
        this.#client.off("end", end);
        this.#others.delete(client);
        end();
      },
    };
  }

  /** Ends each open connection once, and ioredis opens it again. Skips connections that are being opened, because ioredis would not retry them. */
  protected reconnect(): void {
    for (const client of [this.#client, ...this.#others]) {
      const { stream } = client as { stream?: object };
      const isOpen = client.status === "ready" || client.status === "connect";
      if (isOpen && stream && !this.#orphaned.has(stream)) {
        this.#orphaned.add(stream);
        client.disconnect(true);
      }
    }
  }

  readonly #send = (name: string, args: string[]): Promise<unknown> => this.#sender.call(name, args);
}

/**
 * Called at an error of a client that Holdfast has created. ioredis has a listener for the first error of a socket only. With TLS a
 * second error may follow, an alert of the server after its certificate was refused. Without a listener that error ends the process.
 */
export function keepOverReconnects(client: object): void {
  const { stream } = client as { stream?: EventEmitter };
  if (stream?.listenerCount("error") === 0) {
    stream.on("error", () => undefined);
  }
}

function nameOf({ host, port, path, db, sentinels, name }: IoredisOptions): string {
  if (sentinels !== undefined && sentinels !== null) {
    return `sentinel:${name}/${db ?? 0}`;
  }
  return path ?? `${host ?? "localhost"}:${port ?? 6379}/${db ?? 0}`;
}

/**
 * The client without its `keyPrefix`. ioredis adds the prefix to every key, and the derived keys of Holdfast have it inside already.
 * ioredis creates commands with these options, and the client itself sends them.
 */
function withoutPrefix(client: IoredisClient): Pick<IoredisClient, "call"> {
  const options = { ...client.options, keyPrefix: undefined, enableAutoPipelining: false };
  return Object.create(client, {
    options: { value: options },
    sendCommand: { value: (command: never) => client.sendCommand(command) },
  }) as IoredisClient;
}
