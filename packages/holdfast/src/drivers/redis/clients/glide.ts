import {
  evalScript,
  type ChannelKind,
  type CommandConnection,
  type Connection,
  type Subscription,
  type SubscriptionListener,
} from "./connection.ts";
import { inDatabase } from "./database.ts";
import {
  addressOf,
  bytesDecoder,
  candidatesOf,
  configurationOf,
  OwnGlideClient,
  textOf,
  type GlideClient,
} from "./glide-client.ts";
import type { Script } from "../protocol/script.ts";

/** The codes of the server for the kinds of errors that GLIDE names differently. */
const codes: Readonly<Record<string, string>> = {
  ResponseError: "ERR",
  NoScriptError: "NOSCRIPT",
  BusyLoadingError: "LOADING",
  PermissionDenied: "NOPERM",
  ExecAbortError: "EXECABORT",
};

/** How long GLIDE may take to confirm a subscription, ms. */
const confirmationMs = 5_000;

export function isGlide(client: object): client is GlideClient {
  return "customCommand" in client && "getPubSubMessage" in client && !("invokeScriptWithRoute" in client);
}

/**
 * Connections beside the user's client, because its requests time out after 250 ms, and its subscriptions are the user's. Their clients
 * are created with the class and the configuration of the user's client.
 */
export class GlideConnection implements Connection {
  readonly keyPrefix: string = "";
  readonly name: string;
  /** Subscriptions to sharded channels need a client of a cluster. */
  readonly hasPlainChannelsOnly: boolean = true;
  /** Present if the client has several servers. After a failover GLIDE would send commands to the former primary. */
  readonly refreshPrimary?: () => void;
  readonly #client: GlideClient;
  readonly #database: number;
  readonly #commands: OwnGlideClient;
  readonly #subscribers = new Set<GlideSubscriber>();
  readonly #listeners = new Set<() => void>();
  /** The connection was lost, and no reply has arrived since. */
  #isDown = false;
  #failure: unknown;

  constructor(client: GlideClient) {
    const config = configurationOf(client);
    const candidates = candidatesOf(config);
    this.#client = client;
    this.#database = config.databaseId ?? 0;
    this.name = `${candidates.map(addressOf).join(",")}/${this.#database}`;
    this.#commands = new OwnGlideClient(client, {
      ended: () => this.#down(new Error("The client was closed")),
    });
    if (candidates.length > 1) {
      this.refreshPrimary = () => this.#reopen();
    }
  }

  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
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
    const subscriber = new GlideSubscriber(this.#client, channel, listener);
    this.#subscribers.add(subscriber);
    return {
      close: () => {
        this.#subscribers.delete(subscriber);
        subscriber.close();
      },
      add: (added) => subscriber.add(added),
      remove: (removed) => subscriber.remove(removed),
    };
  }

  dedicatedConnection(): CommandConnection {
    return new GlideConnection(this.#client);
  }

  close(): void {
    this.#commands.close();
  }

  #reopen(): void {
    this.#commands.reopen();
    this.#down(new Error("The primary is looked for again"));
    for (const subscriber of this.#subscribers) {
      subscriber.reopen();
    }
  }

  #down(error: unknown): void {
    this.#failure = error;
    if (!this.#isDown) {
      this.#isDown = true;
      for (const listener of this.#listeners) {
        listener();
      }
    }
  }

  readonly #send = async (name: string, args: string[]): Promise<unknown> => {
    try {
      const client = await this.#commands.open();
      const reply = await client.customCommand([name, ...args], { decoder: bytesDecoder });
      this.#isDown = false;
      this.#failure = undefined;
      return textsOf(reply);
    } catch (error) {
      const reason = error instanceof Error ? error.name : "";
      if (reason === "ConnectionError" || reason === "ClosingError" || reason === "EngineError") {
        this.#down(error);
      }
      throw serverError(error);
    }
  };
}

/** The subscriptions of one connection. GLIDE repeats them after a reconnect. */
class GlideSubscriber {
  readonly #listener: SubscriptionListener;
  readonly #channels: Set<string>;
  readonly #own: OwnGlideClient;
  /** How many changes of this class wait for their confirmation. */
  #changes = 0;

  constructor(client: GlideClient, channel: string, listener: SubscriptionListener) {
    this.#listener = listener;
    this.#channels = new Set([channel]);
    this.#own = new OwnGlideClient(client, {
      subscription: {
        channels: this.#channels,
        message: (text, from) => listener.message(text, from),
        changed: () => {
          if (this.#changes === 0) {
            listener.disconnected();
            listener.connected();
          }
        },
      },
      ended: () => listener.disconnected(),
    });
    this.#open();
  }

  async add(channel: string): Promise<boolean> {
    const isNew = !this.#channels.has(channel);
    this.#channels.add(channel);
    const client = await this.#own.open();
    if (isNew) {
      await this.#change(() => client.subscribe([channel], confirmationMs));
    }
    return true;
  }

  remove(channel: string): void {
    this.#channels.delete(channel);
    this.#own
      .open()
      .then((client) => this.#change(() => client.unsubscribe([channel], confirmationMs)))
      .catch(() => undefined);
  }

  reopen(): void {
    this.#own.reopen();
    this.#listener.disconnected();
    this.#open();
  }

  close(): void {
    this.#own.close();
  }

  #open(): void {
    this.#own.open().then(
      () => this.#listener.connected(),
      () => this.#listener.disconnected(),
    );
  }

  async #change(change: () => Promise<unknown>): Promise<void> {
    this.#changes += 1;
    try {
      await change();
    } finally {
      this.#changes -= 1;
    }
  }
}

/** The reply with texts. GLIDE turns maps into arrays of `{ key, value }`, and they become key, value, ... */
function textsOf(reply: unknown): unknown {
  if (Array.isArray(reply)) {
    return reply.flatMap((item: unknown) =>
      isEntry(item) ? [textsOf(item.key), textsOf(item.value)] : [textsOf(item)],
    );
  }
  return reply instanceof Uint8Array ? textOf(reply) : reply;
}

function isEntry(item: unknown): item is { readonly key: unknown; readonly value: unknown } {
  return typeof item === "object" && item !== null && "key" in item && "value" in item;
}

/** The error with the message of the server. GLIDE replaces the code of the error by its own name of it. */
function serverError(error: unknown): unknown {
  if (!(error instanceof Error) || error.name !== "RequestError") {
    return error;
  }
  const [, kind, detail = ""] =
    /^An error was signalled by the server: - (\w+)(?:: (.*))?$/s.exec(error.message) ?? [];
  return new Error(
    kind === undefined
      ? error.message.replace(/^([A-Z]+): /, "$1 ")
      : `${codes[kind] ?? kind.toUpperCase()} ${detail}`,
  );
}
