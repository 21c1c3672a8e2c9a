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
  on(event: string, listener: (...args: never[]) => void): unknown;
  off(event: string, listener: (...args: never[]) => void): unknown;
}

interface IoredisOptions {
  readonly keyPrefix?: unknown;
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly db?: number;
}

/** ioredis has its command class on the client's own class: with it a key is sent as it stands, without `keyPrefix` before it. */
type CommandClass = new (
  name: string,
  args: string[],
  options: { replyEncoding: "utf8" },
) => { readonly promise: Promise<unknown> };

export function isIoredis(client: object): client is IoredisClient {
  return "defineCommand" in client && "ssubscribe" in client && typeof client.ssubscribe === "function";
}

export class IoredisConnection implements Connection {
  readonly keyPrefix: string;
  readonly name: string;
  readonly #client: IoredisClient;
  readonly #command: CommandClass | undefined;

  constructor(client: IoredisClient) {
    const { keyPrefix, host, port, path, db } = client.options as IoredisOptions;
    this.#client = client;
    this.keyPrefix = keyPrefix === undefined || keyPrefix === null ? "" : String(keyPrefix as string);
    this.name = path ?? `${host ?? "localhost"}:${port ?? 6379}/${db ?? 0}`;
    this.#command = (client.constructor as { Command?: CommandClass }).Command;
    if (this.keyPrefix !== "" && !this.#command) {
      throw new TypeError("Expected `client` without `keyPrefix`, or of ioredis' own class");
    }
  }

  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return evaluate(this.#send, script, keys, args);
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
    subscriber.on("error", () => undefined);
    subscriber.on("ready", subscribe);
    subscriber.on("close", () => {
      listener.down();
    });
    subscriber.on(kind === "sharded" ? "smessage" : "message", (_channel: string, text: string) => {
      listener.message(text);
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

  readonly #send = (name: string, args: string[]): Promise<unknown> => {
    if (!this.#command) {
      return this.#client.call(name, args);
    }
    const command = new this.#command(name, args, { replyEncoding: "utf8" });
    this.#client.sendCommand(command as never);
    return command.promise;
  };
}
