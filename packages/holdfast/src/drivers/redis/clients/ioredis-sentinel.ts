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
 * By sentinels. Commands go by a connection of our own: a primary that hangs never closes one, and to drop the client's would fail
 * the commands of others. Each connection asks the sentinels who is the primary whenever it is made, and every one is made anew when
 * a sentinel tells of another primary: the former one may take writes for seconds after that, and they would be lost.
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

  /** The client was connected again after its end: so are ours. */
  readonly #watchNext = (): void => {
    if (this.#connection.status === "end") {
      this.#connection.connect().catch(() => undefined);
    }
    if (this.#isWatching && this.#watchers.length === 0) {
      this.#watch();
    }
  };

  /** Every sentinel is listened to: who is asked meanwhile may not know of the change yet. */
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
