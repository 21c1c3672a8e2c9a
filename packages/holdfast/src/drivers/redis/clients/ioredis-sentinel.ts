import type { ChannelKind, Subscription, SubscriptionListener } from "./connection.ts";
import {
  reconnects,
  IoredisConnection,
  keepOverReconnects,
  type ConnectableClient,
  type IoredisClient,
  type IoredisOptions,
} from "./ioredis.ts";

interface SentinelOptions extends IoredisOptions {
  readonly sentinelUsername?: string;
  readonly sentinelPassword?: string;
  readonly sentinelTLS?: object;
}

const switchedChannel = "+switch-master";

export function usesSentinels({ options }: IoredisClient): boolean {
  const { sentinels } = options as SentinelOptions;
  return sentinels !== undefined && sentinels !== null;
}

/**
 * The connection to a primary that sentinels name. Commands have a separate connection, because an unresponsive primary never closes
 * one, and ending the client's connection would fail the commands of other programs.
 *
 * Each connection requests the primary from the sentinels when it is opened. When a sentinel announces another primary, all connections
 * are opened again. The former primary may still accept writes for seconds, and these writes would be lost.
 */
export class IoredisSentinelConnection extends IoredisConnection {
  readonly #client: IoredisClient;
  readonly #connection: ConnectableClient;
  #watchers: IoredisClient[] = [];
  #isWatching = false;

  constructor(client: IoredisClient) {
    const own = client.duplicate({
      ...reconnects,
      lazyConnect: true,
      disconnectTimeout: 100,
    }) as ConnectableClient;
    own.on("error", () => keepOverReconnects(own));
    super(own);
    this.#client = client;
    this.#connection = own;
    client.on("end", this.#end);
    client.on("connect", this.#watchNext);
  }

  override subscribe(channel: string, kind: ChannelKind, listener: SubscriptionListener): Subscription {
    if (!this.#isWatching) {
      this.#isWatching = true;
      this.#watch();
    }
    return super.subscribe(channel, kind, listener);
  }

  refreshPrimary(): void {
    this.reconnect();
  }

  close(): void {
    this.#client.off("end", this.#end);
    this.#client.off("connect", this.#watchNext);
    this.#end();
  }

  readonly #end = (): void => {
    for (const opened of [this.#connection, ...this.#watchers]) {
      opened.disconnect();
    }
    this.#watchers = [];
  };

  /** The user's client was connected again after its end. Connects the clients of Holdfast again. */
  readonly #watchNext = (): void => {
    if (this.#connection.status === "end") {
      this.#connection.connect().catch(() => undefined);
    }
    if (this.#isWatching && this.#watchers.length === 0) {
      this.#watch();
    }
  };

  /** Subscribes to every sentinel, because a single sentinel may learn late of the change. */
  #watch(): void {
    const { sentinels, name, sentinelUsername, sentinelPassword, sentinelTLS } = this.#client
      .options as SentinelOptions;
    for (const { host, port } of sentinels ?? []) {
      const watcher = this.#client.duplicate({
        ...reconnects,
        sentinels: null,
        host,
        port: port ?? 26_379,
        username: sentinelUsername ?? null,
        password: sentinelPassword ?? null,
        tls: sentinelTLS,
        db: 0,
        keyPrefix: "",
        lazyConnect: false,
        enableReadyCheck: false,
        maxRetriesPerRequest: null,
      });
      watcher.on("error", () => keepOverReconnects(watcher));
      watcher.on("connect", () => (watcher as { stream?: { unref?: () => void } }).stream?.unref?.());
      watcher.on("message", (_channel: unknown, text: unknown) => {
        if (String(text).startsWith(`${name} `)) {
          this.reconnect();
        }
      });
      watcher.subscribe(switchedChannel).catch(() => undefined);
      this.#watchers.push(watcher);
    }
  }
}
