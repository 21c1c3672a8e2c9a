import type { Clock, Timer } from "../../../runtime/clock.ts";
import { publish } from "../../../diagnostics.ts";
import { backoffMs, hash32, type Random } from "../../../runtime/random.ts";
import type { ChannelKind, Connection, Subscription } from "../clients/connection.ts";
import { isTransient } from "./errors.ts";

/** Whether messages reach us: not known yet, seen to, or tried in vain. */
export type NotificationStatus = "unverified" | "verified" | "unavailable";

const attemptsBeforeUnavailable = 3;
/** Of so many proofs a message that comes late is known. */
const rememberedPings = 100;
const maxRetryMs = 5_000;

interface SubscriberOptions {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly random: Random;
  readonly channel: string;
  readonly timeoutMs: number;
  /** Publishes `text` to the channel by a script on the connection for commands; the number of receivers. */
  readonly publish: (text: string) => Promise<number>;
  /** The server has confirmed the subscription. */
  readonly answered: () => void;
  readonly received: (text: string) => void;
  /** Called each time that hearing was proved, and when it turns out to be unavailable. */
  readonly changed: (hearing: NotificationStatus) => void;
  /** The subscription's connection was lost. */
  readonly lost: () => void;
}

/**
 * The one channel of this driver instance. It counts only once it is proved: a script on the same server published to it,
 * counted a receiver, and was heard; again after each reconnect. A waiter may queue only then.
 */
export class Subscriber {
  readonly #options: SubscriberOptions;
  #kind: ChannelKind = "sharded";
  #subscription: Subscription | undefined;
  #status: NotificationStatus = "unverified";
  /** Nobody else received the last proof. */
  #isAlone = false;
  #isUp = false;
  /** Counts the subscriptions: one that is closed may tell of it long after its successor is up. */
  #generation = 0;
  #attempts = 0;
  #openNotBefore = -Infinity;
  #ping: { readonly text: string; readonly heard: () => void } | undefined;
  /** A proof names its server, because a replica passes on what its master publishes. */
  readonly #pingPrefix: string;
  readonly #ownPings: string[] = [];
  #retry: Timer;
  #isClosed = false;

  constructor(options: SubscriberOptions) {
    this.#options = options;
    this.#pingPrefix = `ping ${hash32(options.connection.name).slice(0, 8)}`;
  }

  get status(): NotificationStatus {
    return this.#status;
  }

  /** Whether all grants on the channel are ours. A clone of the machine has the same channel, and hears ours as we hear its. */
  get isAlone(): boolean {
    return this.#status === "verified" && this.#isAlone;
  }

  start(kind: ChannelKind): void {
    if (!this.#isClosed) {
      this.#kind = kind;
      this.#open();
      this.#retryIn(this.#options.timeoutMs); // a subscription may be swallowed without a word
    }
  }

  /** Proves anew, as the connection for commands may lead to another server now. */
  verifyAgain(): void {
    if (this.#isUp) {
      this.#status = this.#status === "verified" ? "unverified" : this.#status;
      void this.#verify();
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#options.clock.clearTimer(this.#retry);
    this.#subscription?.close();
  }

  #open(): void {
    const { connection, channel } = this.#options;
    this.#subscription?.close();
    if (this.#isUp) {
      this.#isUp = false;
      this.#options.lost();
    }
    const generation = ++this.#generation;
    this.#subscription = connection.subscribe(channel, this.#kind, {
      connected: () => {
        if (generation === this.#generation) {
          this.#isUp = true;
          this.#options.answered();
          void this.#verify();
        }
      },
      disconnected: () => {
        if (generation === this.#generation) {
          this.#down();
        }
      },
      message: (text) => {
        if (text === this.#ping?.text) {
          this.#ping.heard();
        } else if (!this.#isClosed && !this.#handlePing(text)) {
          this.#options.received(text);
        }
      },
    });
  }

  /** Published by this process: here, or on another server, of which this one is a replica. */
  #handlePing(text: string): boolean {
    const isPing = text.startsWith("ping ");
    return isPing && (!text.startsWith(this.#pingPrefix) || this.#ownPings.includes(text));
  }

  #down(): void {
    if (this.#isClosed) {
      return;
    }
    if (!this.#isUp) {
      this.#failed(new Error("the subscription failed"));
      return;
    }
    this.#isUp = false;
    this.#status = "unverified";
    this.#ping = undefined;
    this.#options.lost();
    this.#retryIn(this.#options.timeoutMs); // its client may not try again
  }

  async #verify(): Promise<void> {
    const { clock, random, timeoutMs, publish } = this.#options;
    // A clone may draw the same id, but not at the same moment.
    const drawn = hash32(random.id(), String(clock.now()), String(clock.wall()));
    const text = this.#pingPrefix + drawn.slice(this.#pingPrefix.length - "ping ".length);
    this.#ownPings.push(text);
    this.#ownPings.splice(0, this.#ownPings.length - rememberedPings);
    clock.clearTimer(this.#retry);
    let timer: Timer;
    try {
      const received = new Promise<true>((resolve) => {
        this.#ping = {
          text,
          heard: () => resolve(true),
        };
      });
      const timedOut = new Promise<false>((resolve) => {
        timer = clock.setTimer(() => resolve(false), timeoutMs);
      });
      const receivers = await publish(text);
      if (receivers === 0 || !(await Promise.race([received, timedOut]))) {
        throw new Error(
          receivers === 0 ? "nobody receives on our channel" : "what we publish does not reach us",
        );
      }
      this.#isAlone = receivers === 1;
      this.#verified(text);
    } catch (error) {
      if (this.#ping?.text === text) {
        this.#failed(error);
      }
    } finally {
      clock.clearTimer(timer);
    }
  }

  #verified(text: string): void {
    if (this.#ping?.text === text && this.#isUp && !this.#isClosed) {
      this.#attempts = 0;
      this.#ping = undefined;
      this.#status = "verified";
      publish("node", () => ({ node: this.#options.connection.name, event: "notifications-proved" }));
      this.#options.changed("verified");
    }
  }

  #failed(error: unknown): void {
    if (this.#isClosed) {
      return;
    }
    const { connection, random } = this.#options;
    this.#attempts += 1;
    const delayMs = backoffMs(random, this.#attempts, maxRetryMs);
    if (
      this.#status !== "unavailable" &&
      (this.#attempts >= attemptsBeforeUnavailable || !isTransient(error))
    ) {
      this.#status = "unavailable";
      publish("node", () => ({
        node: connection.name,
        event: "notifications-unavailable",
        detail: String(error),
      }));
      this.#options.changed("unavailable");
      this.#reopenIn(delayMs);
    } else if (!this.#isUp && this.#attempts % attemptsBeforeUnavailable === 0) {
      this.#reopenIn(delayMs);
    }
    this.#retryIn(delayMs);
  }

  /** A fresh connection may fare better. Where it is refused at once, the next one has to wait. */
  #reopenIn(delayMs: number): void {
    const now = this.#options.clock.now();
    if (now >= this.#openNotBefore) {
      this.#openNotBefore = now + delayMs;
      this.#open();
    }
  }

  #retryIn(delayMs: number): void {
    const { clock } = this.#options;
    clock.clearTimer(this.#retry);
    this.#retry = clock.setTimer(() => {
      if (this.#isUp && this.#status !== "verified") {
        void this.#verify();
      } else if (!this.#isUp) {
        this.#failed(new Error("the subscription was not confirmed"));
      }
    }, delayMs);
  }
}
