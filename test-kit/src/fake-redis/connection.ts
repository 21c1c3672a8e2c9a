import type { Connection, Subscription, SubscriptionListener } from "holdfast/redis";

import type { Kind, PubSub } from "./pub-sub.ts";

export type Script = Parameters<Connection["run"]>[0];
type ChannelKind = Parameters<Connection["subscribe"]>[1];

/** The members of the server that a connection uses. */
export interface Host {
  readonly pubSub: PubSub;
  readonly hasShards: boolean;
  /** @throws {ServerError} */
  execute(script: Script, keys: readonly string[], args: readonly string[]): unknown;
  /** @throws {ServerError} */
  command(name: string, args: readonly string[]): unknown;
}

/** One client of a fake Redis. Requests, replies and messages each take a turn of the microtask queue, in order. */
export class FakeConnection implements Connection {
  readonly keyPrefix: string;
  readonly name: string;
  readonly #host: Host;
  readonly #downListeners = new Set<() => void>();
  readonly #subscriptions = new Set<FakeSubscription>();
  #epoch = 0;

  constructor(host: Host, name: string, keyPrefix: string) {
    this.#host = host;
    this.name = name;
    this.keyPrefix = keyPrefix;
  }

  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.#send(() => this.#host.execute(script, keys, args));
  }

  command(name: string, args: readonly string[]): Promise<unknown> {
    return this.#send(() => this.#host.command(name, args));
  }

  subscribe(channel: string, kind: ChannelKind, listener: SubscriptionListener): Subscription {
    const subscription = new FakeSubscription(this.#host, channel, kind, listener);
    this.#subscriptions.add(subscription);
    subscription.open();
    return {
      close: () => {
        this.#subscriptions.delete(subscription);
        subscription.close();
      },
    };
  }

  onDown(listener: () => void): () => void {
    const called = (): void => {
      listener();
    };
    this.#downListeners.add(called);
    return () => {
      this.#downListeners.delete(called);
    };
  }

  /** Drops both connections, which are then made again. Requests under way get no reply. */
  drop(): void {
    this.#epoch += 1;
    for (const listener of Array.from(this.#downListeners)) {
      listener();
    }
    for (const subscription of this.#subscriptions) {
      subscription.drop();
    }
  }

  #send(perform: () => unknown): Promise<unknown> {
    const epoch = this.#epoch;
    return new Promise((resolve, reject) => {
      const reply = (answer: () => void): void => {
        queueMicrotask(() => {
          if (epoch === this.#epoch) {
            answer();
          } else {
            reject(new Error("Connection is closed."));
          }
        });
      };
      reply(() => {
        try {
          const answer = perform();
          reply(() => {
            resolve(answer);
          });
        } catch (error) {
          reply(() => {
            reject(error as Error);
          });
        }
      });
    });
  }
}

class FakeSubscription {
  readonly #host: Host;
  readonly #channel: string;
  readonly #kind: Kind;
  readonly #listener: SubscriptionListener;
  #isClosed = false;

  constructor(host: Host, channel: string, kind: ChannelKind, listener: SubscriptionListener) {
    this.#host = host;
    this.#channel = channel;
    this.#kind = kind === "sharded" ? "s" : "p";
    // Each subscription needs its own object, because several may share one listener.
    this.#listener = {
      connected: () => {
        listener.connected();
      },
      disconnected: () => {
        listener.disconnected();
      },
      message: (text) => {
        listener.message(text);
      },
    };
  }

  open(): void {
    queueMicrotask(() => {
      if (this.#isClosed) {
        return;
      }
      if (this.#kind === "s" && !this.#host.hasShards) {
        this.#listener.disconnected();
        return;
      }
      this.#host.pubSub.add(this.#kind, this.#channel, this.#listener);
      this.#listener.connected();
    });
  }

  drop(): void {
    this.#host.pubSub.remove(this.#kind, this.#channel, this.#listener);
    this.#listener.disconnected();
    this.open();
  }

  close(): void {
    this.#isClosed = true;
    this.#host.pubSub.remove(this.#kind, this.#channel, this.#listener);
  }
}
