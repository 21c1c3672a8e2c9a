import type { StoreListener } from "../../store/lease-store.ts";
import type { Connection, Subscription } from "../clients/connection.ts";

interface WakeUpsOptions {
  readonly connection: Connection;
  /** The channel of this library's own messages: `free <lock key>` and `broken <token>`. */
  readonly ownChannel: string;
  /** A channel on which the other library publishes the lock keys of all released locks. */
  readonly commonChannel: string | undefined;
}

/** The waiters of one lock in this process. */
interface Waiters {
  readonly channel: string | undefined;
  /** The tickets by token. */
  readonly tickets: Map<string, string>;
}

/** Wakes the waiters of this process when the other library, or this one, announces a release. */
export class WakeUps {
  readonly #options: WakeUpsOptions;
  readonly #byLock = new Map<string, Waiters>();
  readonly #lockByChannel = new Map<string, string>();
  #listener: StoreListener | undefined;
  #subscription: Subscription | undefined;
  #isConnected = false;
  /** A channel was refused, for example for lack of a permission. */
  #isRefused = false;

  constructor(options: WakeUpsOptions) {
    this.#options = options;
  }

  /** Whether the messages arrive, as far as known. */
  get isConnected(): boolean {
    return this.#isConnected;
  }

  get isComplete(): boolean {
    return this.#isConnected && !this.#isRefused && this.#subscription?.add !== undefined;
  }

  listen(listener: StoreListener): () => void {
    this.#listener = listener;
    return () => {
      this.#listener = undefined;
      this.#subscription?.close();
    };
  }

  /** Opens the connection. The first request does, because many processes only read. */
  open(): void {
    if (this.#subscription || !this.#listener) {
      return;
    }
    const { connection, ownChannel, commonChannel } = this.#options;
    this.#subscription = connection.subscribe(ownChannel, "plain", {
      connected: () => {
        this.#isConnected = true;
        this.#wakeAll();
      },
      disconnected: () => {
        if (this.#isConnected) {
          this.#isConnected = false;
          this.#isRefused = false;
          this.#listener?.interrupted();
        }
      },
      message: (text, channel) => this.#received(text, channel ?? ownChannel),
    });
    if (commonChannel !== undefined) {
      this.#add(commonChannel, () => undefined);
    }
  }

  /** A request is in the queue. */
  waits(
    lock: string,
    channel: string | undefined,
    { token, ticket }: { token: string; ticket: string },
  ): void {
    const waiters = this.#byLock.get(lock) ?? { channel, tickets: new Map<string, string>() };
    waiters.tickets.set(token, ticket);
    if (this.#byLock.get(lock) === waiters) {
      return;
    }
    this.#byLock.set(lock, waiters);
    if (channel !== undefined) {
      this.#lockByChannel.set(channel, lock);
      this.#add(channel, () => this.#wakeFirst(lock)); // a release before the subscription was not announced to this process
    }
  }

  /** A request has left the queue. */
  left(lock: string, token: string): void {
    const waiters = this.#byLock.get(lock);
    waiters?.tickets.delete(token);
    if (waiters?.tickets.size === 0) {
      this.#byLock.delete(lock);
      if (waiters.channel !== undefined) {
        this.#lockByChannel.delete(waiters.channel);
        this.#subscription?.remove?.(waiters.channel);
      }
    }
  }

  #add(channel: string, confirmed: () => void): void {
    this.#subscription?.add?.(channel).then(
      (isConfirmed) => {
        if (isConfirmed) {
          confirmed();
        }
      },
      () => {
        this.#isRefused = true;
      },
    );
  }

  #received(text: string, channel: string): void {
    const lock = this.#lockByChannel.get(channel);
    if (lock !== undefined) {
      this.#wakeFirst(lock);
    } else if (channel === this.#options.commonChannel) {
      this.#wakeFirst(text);
    } else if (text.startsWith("free ")) {
      this.#wakeFirst(text.slice(5));
    } else if (text.startsWith("broken ")) {
      this.#listener?.lost(text.slice(7), "broken");
    }
  }

  /** Wakes the first waiter of this process. After its grant the driver wakes the next one, if both can share the lock. */
  #wakeFirst(lock: string): void {
    const tickets = Array.from(this.#byLock.get(lock)?.tickets.values() ?? []);
    const [first] = tickets.sort((one, other) => Number(one) - Number(other));
    if (first !== undefined) {
      this.#listener?.wake(first);
    }
  }

  #wakeAll(): void {
    for (const lock of this.#byLock.keys()) {
      this.#wakeFirst(lock);
    }
  }
}
