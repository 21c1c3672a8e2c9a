import { publish } from "../../../diagnostics.ts";
import type { LossReason } from "../../../errors.ts";
import type { ChannelKind, Connection, Subscription } from "../clients/connection.ts";
import {
  type Message,
  parseMessage,
  type ProcessAnswer,
  type ProcessQuestion,
  type PushedGrant,
} from "../protocol/messages.ts";
import type { Clock, Timer } from "../../../runtime/clock.ts";
import { backoffMs, hash32, type Random } from "../../../runtime/random.ts";
import { isTransient } from "./errors.ts";

/** Receives the notifications of one server. */
export interface NotificationListener {
  granted(grant: PushedGrant): void;
  ended(token: string, reason: LossReason, cause: unknown): void;
  /** The waiter with this token has no queue entry any longer, and must send its request again. */
  retry?(token: string): void;
  /** Another process has verified its subscription to this client's channel. That process is a clone with the same tokens. */
  cloned(): void;
  /** The latch with this key and this time of creation is open. A quorum has no latches. */
  latchOpened?(lock: string, createdAt: string): void;
  processAsked?(question: ProcessQuestion): void;
  processAnswered?(answer: ProcessAnswer): void;
  /** An earlier competing request needs the vote with this number. Only a node of a quorum sends this notification. */
  voteRequestedBack?(token: string, number: number): void;
}

/** Calls the method of the listener that a notification is for. */
export class NotificationDispatcher {
  readonly #connection: Connection;
  readonly #listener: NotificationListener;
  /** How many notifications had a form that no script writes. */
  #malformed = 0;

  constructor(connection: Connection, listener: NotificationListener) {
    this.#connection = connection;
    this.#listener = listener;
  }

  /** A notification in a form that no script writes is counted and ignored. */
  dispatch(text: string): void {
    const message = parseMessage(text);
    if (message === undefined) {
      this.#countMalformed();
    } else if (message.kind === "process-question") {
      this.#listener.processAsked?.(message);
    } else if (message.kind === "process-answer") {
      this.#listener.processAnswered?.(message);
    } else {
      this.#deliver(message);
    }
  }

  #countMalformed(): void {
    this.#malformed += 1;
    publish("node", () => ({
      node: this.#connection.name,
      event: "malformed-message",
      detail: { count: this.#malformed },
    }));
  }

  #deliver(message: Exclude<Message, ProcessQuestion | ProcessAnswer>): void {
    const listener = this.#listener;
    switch (message.kind) {
      case "grant":
        listener.granted(message.grant);
        break;
      case "retry":
        listener.retry?.(message.token);
        break;
      case "latch-open":
        listener.latchOpened?.(message.lock, message.createdAt);
        break;
      case "inquiry":
        listener.voteRequestedBack?.(message.token, message.number);
        break;
      case "broken":
        listener.ended(message.token, "broken", new Error(message.reason));
        break;
      case "ping":
        listener.cloned();
    }
  }
}

/** Whether notifications arrive: not verified yet, verified, or unavailable after several failures. */
export type NotificationStatus = "unverified" | "verified" | "unavailable";

const attemptsBeforeUnavailable = 3;
/** How many pings a subscriber remembers. A late ping of these is recognized as its own. */
const rememberedPings = 100;
const maxRetryMs = 5_000;

interface SubscriberOptions {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly random: Random;
  readonly channel: string;
  readonly timeoutMs: number;
  /** Publishes `text` to the channel, by a script on the command connection. Resolves with the number of receivers. */
  readonly publish: (text: string) => Promise<number>;
  /** The server has confirmed the subscription. */
  readonly answered: () => void;
  readonly received: (text: string) => void;
  /** Called after each verification, and when notifications become unavailable. */
  readonly changed: (status: NotificationStatus) => void;
  /** The subscription's connection was lost. */
  readonly lost: () => void;
}

/**
 * The subscription to the one channel of this driver instance. A waiter may have a queue entry only after the subscription is verified.
 *
 * Verification: a script on the same server publishes a ping to the channel, the server counts a receiver, and the ping arrives. The
 * subscriber verifies again after each reconnect.
 */
export class Subscriber {
  readonly #options: SubscriberOptions;
  #kind: ChannelKind = "sharded";
  #subscription: Subscription | undefined;
  #status: NotificationStatus = "unverified";
  #isUp = false;
  /** Counts the subscriptions, because a closed subscription may report its end long after its successor is connected. */
  #generation = 0;
  #attempts = 0;
  #openNotBefore = -Infinity;
  #ping: { readonly text: string; readonly received: () => void } | undefined;
  /** A ping names its server, because a replica also publishes the pings of its primary. */
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

  start(kind: ChannelKind): void {
    if (!this.#isClosed) {
      this.#kind = kind;
      this.#open();
      this.#retryIn(this.#options.timeoutMs); // a client library may drop a subscription without an error
    }
  }

  /** Verifies again, because the command connection may lead to another server now. */
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
          this.#ping.received();
        } else if (!this.#isClosed && !this.#isOwnPing(text)) {
          this.#options.received(text);
        }
      },
    });
  }

  /** Whether the ping is one of this process, published here or on another server of which this server is a replica. */
  #isOwnPing(text: string): boolean {
    const isPing = text.startsWith("ping ");
    return isPing && (!text.startsWith(this.#pingPrefix) || this.#ownPings.includes(text));
  }

  #down(): void {
    if (this.#isClosed) {
      return;
    }
    if (!this.#isUp) {
      this.#failed(new Error("The subscription failed"));
      return;
    }
    this.#isUp = false;
    this.#status = "unverified";
    this.#ping = undefined;
    this.#options.lost();
    this.#retryIn(this.#options.timeoutMs); // the client library may not reconnect
  }

  async #verify(): Promise<void> {
    const { clock, random, timeoutMs, publish } = this.#options;
    // A clone may draw the same ID, but not at the same time.
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
          received: () => resolve(true),
        };
      });
      const timedOut = new Promise<false>((resolve) => {
        timer = clock.setTimer(() => resolve(false), timeoutMs);
      });
      const receivers = await publish(text);
      if (receivers === 0 || !(await Promise.race([received, timedOut]))) {
        throw new Error(
          receivers === 0 ? "The channel has no receiver" : "The published ping did not arrive",
        );
      }
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

  /** Opens a new connection, which may succeed. If the server refuses it at once, the next one waits. */
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
        this.#failed(new Error("The subscription was not confirmed"));
      }
    }, delayMs);
  }
}
