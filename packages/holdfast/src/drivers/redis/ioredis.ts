import type { EventEmitter } from "node:events";

import {
  evaluate,
  type ChannelKind,
  type Connection,
  type Subscription,
  type SubscriptionListener,
} from "./connection.ts";
import type { Script } from "./script.ts";

/** What we use of an ioredis `Redis` (5 and 6). */
export interface IoredisClient {
  readonly options: object;
  duplicate(override?: object): IoredisClient;
  defineCommand(name: string, definition: { lua: string; numberOfKeys?: number }): void;
  call(command: string, args: string[]): Promise<unknown>;
  sendCommand(command: never): unknown;
  subscribe(...channels: string[]): Promise<unknown>;
  ssubscribe(...channels: string[]): Promise<unknown>;
  disconnect(reconnect?: boolean): void;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

interface IoredisOptions {
  readonly keyPrefix?: unknown;
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly db?: number;
}

export function isIoredis(client: object): client is IoredisClient {
  return "defineCommand" in client && "ssubscribe" in client && typeof client.ssubscribe === "function";
}

export class IoredisConnection implements Connection {
  readonly keyPrefix: string;
  readonly name: string;
  readonly #client: IoredisClient;
  readonly #sender: Pick<IoredisClient, "call">;

  constructor(client: IoredisClient) {
    const { keyPrefix, host, port, path, db } = client.options as IoredisOptions;
    this.#client = client;
    this.keyPrefix = keyPrefix === undefined || keyPrefix === null ? "" : String(keyPrefix as string);
    this.name = path ?? `${host ?? "localhost"}:${port ?? 6379}/${db ?? 0}`;
    this.#sender = withoutPrefix(client);
  }

  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return evaluate(this.#send, script, keys, args);
  }

  command(name: string, args: readonly string[]): Promise<unknown> {
    return this.#send(name, [...args]);
  }

  onDown(listener: () => void): () => void {
    this.#client.on("close", listener);
    return () => {
      this.#client.off("close", listener);
    };
  }

  subscribe(channel: string, kind: ChannelKind, listener: SubscriptionListener): Subscription {
    // A subscriber has nothing to lose by trying for ever, and no keys.
    const subscriber = this.#client.duplicate({
      keyPrefix: "",
      lazyConnect: false,
      autoResubscribe: false,
      enableOfflineQueue: true,
      maxRetriesPerRequest: null,
      retryStrategy: (times: number) => Math.min(times * 50, 2_000),
    });
    const subscribe = (): void => {
      (subscriber as { stream?: { unref?: () => void } }).stream?.unref?.();
      const subscribed = kind === "sharded" ? subscriber.ssubscribe(channel) : subscriber.subscribe(channel);
      subscribed.then(
        () => {
          listener.up();
        },
        () => {
          listener.down();
        },
      );
    };
    subscriber.on("error", () => {
      outliveSocket(subscriber);
    });
    subscriber.on("ready", subscribe);
    subscriber.on("close", () => {
      listener.down();
    });
    subscriber.on(kind === "sharded" ? "smessage" : "message", (_channel: unknown, text: unknown) => {
      listener.message(String(text));
    });
    const close = (): void => {
      subscriber.disconnect();
    };
    this.#client.on("end", close);
    return {
      close: () => {
        this.#client.off("end", close);
        close();
      },
    };
  }

  readonly #send = (name: string, args: string[]): Promise<unknown> => this.#sender.call(name, args);
}

/**
 * Called at an error of a client of our own: ioredis hears the first error of a socket only, and with TLS a second one may follow (an
 * alert of the server, after its certificate was refused), which would end the process.
 */
export function outliveSocket(client: object): void {
  const { stream } = client as { stream?: EventEmitter };
  if (stream?.listenerCount("error") === 0) {
    stream.on("error", () => undefined);
  }
}

/**
 * The same client, sending keys as they stand: ioredis puts `keyPrefix` before every key, and our derived keys have it inside.
 * Commands are made with these options and then sent by the client itself.
 */
function withoutPrefix(client: IoredisClient): Pick<IoredisClient, "call"> {
  const options = { ...client.options, keyPrefix: undefined, enableAutoPipelining: false };
  return Object.create(client, {
    options: { value: options },
    sendCommand: { value: (command: never) => client.sendCommand(command) },
  }) as IoredisClient;
}
