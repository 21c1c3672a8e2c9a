import { isUtf8 } from "node:buffer";

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
import { verifiedSender, type VerifiedSender } from "./node-redis-sender.ts";
import type { Script } from "../protocol/script.ts";

/** The members of a standalone node-redis client (4, 5 and 6) that Holdfast uses. */
export interface NodeRedisClient {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  sendCommand(args: string[]): Promise<unknown>;
  duplicate(): unknown;
  sSubscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

interface Subscriber extends NodeRedisClient {
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  unref?(): void;
  destroy?(): void;
  disconnect(): Promise<unknown>;
}

interface NodeRedisOptions {
  readonly url?: string;
  readonly username?: string;
  readonly password?: string;
  readonly socket?: { readonly host?: string; readonly port?: number; readonly path?: string };
  readonly database?: number;
  readonly keyPrefix?: string | Uint8Array | undefined;
  readonly legacyMode?: boolean;
}

export function isNodeRedis(client: object): client is NodeRedisClient {
  return "sSubscribe" in client && typeof client.sSubscribe === "function" && "sendCommand" in client;
}

export class NodeRedisConnection implements Connection {
  /** Present in node-redis 6. node-redis adds the prefix only to its own commands, and Holdfast sends raw commands. */
  readonly keyPrefix: string;
  readonly name: string;
  readonly #client: NodeRedisClient;
  readonly #sender: VerifiedSender;
  readonly #database: number;
  #failure: unknown;

  constructor(client: NodeRedisClient) {
    const { options } = client as { options?: NodeRedisOptions };
    if (options?.legacyMode === true) {
      throw new TypeError(
        "Expected `client` to be without `legacyMode`, because its calls then use callbacks",
      );
    }
    assertPassword(options);
    this.#client = client;
    this.#sender = verifiedSender(client);
    this.#database = Number(options?.database ?? 0);
    this.keyPrefix = prefixOf(options);
    this.name = nameOf(options);
  }

  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return evalScript(this.#send, inDatabase(script, this.#database), keys, args);
  }

  command(name: string, args: readonly string[]): Promise<unknown> {
    return this.#send(name, args);
  }

  onDown(listener: () => void): () => void {
    const failed = (error: unknown): void => {
      this.#failure = error;
      listener();
    };
    const listeners = [["reconnecting", listener], ["end", listener], ["error", failed]] as const; // prettier-ignore
    for (const [event, called] of listeners) {
      this.#client.on(event, called);
    }
    return () => {
      for (const [event, called] of listeners) {
        this.#client.off(event, called);
      }
    };
  }

  failure(): unknown {
    const { isOpen, isReady } = this.#client;
    if (isReady) {
      return undefined;
    }
    return !isOpen && this.#failure === undefined
      ? new Error("the client is not open; call its connect(), or it was closed")
      : handshakeFailure(this.#failure);
  }

  dedicatedConnection(): CommandConnection {
    const client = this.#client.duplicate() as Subscriber;
    client.on("error", () => undefined);
    const connection = new NodeRedisConnection(client);
    let connecting: Promise<unknown> | undefined;
    let isConnected = false;
    let isClosed = false;
    /** Connects at the first command. After the end of this client or of the user's client, connects again at the next command. */
    const connected = async (): Promise<unknown> => {
      if (isClosed) {
        throw new Error("The dedicated connection is closed");
      } else if (isConnected && !client.isOpen) {
        connecting = undefined;
      }
      isConnected &&= connecting !== undefined;
      connecting ??= client.connect().then(
        () => {
          isConnected = true;
        },
        (error: unknown) => {
          connecting = undefined;
          throw error;
        },
      );
      return connecting;
    };
    const ended = (): void => end(client);
    this.#client.on("end", ended);
    return {
      run: async (script, keys, args) => {
        await connected();
        return connection.run(script, keys, args);
      },
      command: async (name, args) => {
        await connected();
        return connection.command(name, args);
      },
      onDown: (listener) => connection.onDown(listener),
      close: () => {
        isClosed = true;
        this.#client.off("end", ended);
        end(client);
      },
    };
  }

  subscribe(channel: string, kind: ChannelKind, listener: SubscriptionListener): Subscription {
    const subscriber = this.#client.duplicate() as Subscriber;
    let state: "connecting" | "subscribed" | "closed" = "connecting";
    const down = (): void => {
      if (state === "closed") {
        end(subscriber); // the subscription was closed before the connection was open
      }
      listener.disconnected();
    };
    // Without this listener node-redis ends the process at the first error.
    subscriber.on("error", down);
    subscriber.on("reconnecting", down);
    subscriber.on("ready", () => {
      subscriber.unref?.();
      if (state === "closed") {
        end(subscriber);
      } else if (state === "subscribed") {
        listener.connected(); // node-redis subscribes again automatically, before the event `ready`
      }
    });
    const onMessage = (text: string, from: string): void => listener.message(text, from);
    const connect = async (): Promise<void> => {
      await subscriber.connect();
      await (kind === "sharded"
        ? subscriber.sSubscribe(channel, onMessage)
        : subscriber.subscribe(channel, onMessage));
      if (state === "closed") {
        end(subscriber);
        return;
      }
      state = "subscribed";
      listener.connected();
    };
    const connecting = connect();
    connecting.catch(down);
    const close = (): void => {
      state = "closed";
      if (subscriber.isReady) {
        end(subscriber); // otherwise when the connection opens or fails
      }
    };
    this.#client.on("end", close);
    return {
      close: () => {
        this.#client.off("end", close);
        close();
      },
      add: async (added) => {
        await connecting;
        await subscriber.subscribe(added, onMessage); // node-redis repeats it after a reconnect
        return true;
      },
      remove: (removed) => {
        connecting.then(() => subscriber.unsubscribe(removed)).catch(() => undefined);
      },
    };
  }

  readonly #send = (name: string, args: readonly string[]): Promise<unknown> =>
    this.#sender.send([name, ...args]);
}

function end(subscriber: Subscriber): void {
  try {
    if (subscriber.destroy) {
      subscriber.destroy();
    } else {
      subscriber.disconnect().catch(() => undefined);
    }
  } catch {
    // The client was closed already.
  }
}

/** With RESP 3 node-redis sends no `AUTH` without a password. The server then takes the connection for one of its default user. */
export function assertPassword(options: Pick<NodeRedisOptions, "username" | "password"> | undefined): void {
  if (options?.username && !options.password) {
    throw new TypeError(
      "Expected `client` to have a password beside its username (any, if the user has none), got none: node-redis may connect as the default user",
    );
  }
}

export function prefixOf(options: Pick<NodeRedisOptions, "keyPrefix"> | undefined): string {
  const bytes = Buffer.from(options?.keyPrefix ?? "");
  if (!isUtf8(bytes)) {
    throw new TypeError(
      "Expected the `keyPrefix` of `client` to be well-formed UTF-8, because keys are text",
    );
  }
  return bytes.toString();
}

/** Host, port and database only, because the URL may have a password. */
function nameOf(options: NodeRedisOptions | undefined): string {
  const { url, socket, database = 0 } = options ?? {};
  if (socket?.path !== undefined) {
    return socket.path;
  }
  const host =
    url !== undefined && URL.canParse(url)
      ? new URL(url).host
      : `${socket?.host ?? "localhost"}:${socket?.port ?? 6379}`;
  return `${host}/${database}`;
}
