import type { Clock, Timer } from "../../../runtime/clock.ts";
import { tell } from "../../../diagnostics.ts";
import { backoffMs, fingerprint, type Random } from "../../../runtime/random.ts";
import type { ChannelKind, Connection, Subscription } from "../clients/connection.ts";
import { isTransient } from "./errors.ts";

/** Whether messages reach us: not known yet, seen to, or tried in vain. */
export type Hearing = "unproved" | "proved" | "unavailable";

const triesBeforeUnavailable = 3;
/** Of so many proofs a message that comes late is known. */
const rememberedProofs = 100;
const longestRetryMs = 5_000;

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
  readonly heard: (text: string) => void;
  /** Called each time that hearing was proved, and when it turns out to be unavailable. */
  readonly changed: (hearing: Hearing) => void;
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
  #hearing: Hearing = "unproved";
  /** Nobody else received the last proof. */
  #isAlone = false;
  #isUp = false;
  /** Counts the subscriptions: one that is closed may tell of it long after its successor is up. */
  #generation = 0;
  #tries = 0;
  #openNotBefore = -Infinity;
  #proof: { readonly text: string; readonly heard: () => void } | undefined;
  /** A proof names its server, because a replica passes on what its master publishes. */
  readonly #proofPrefix: string;
  readonly #ownProofs: string[] = [];
  #retry: Timer;
  #isClosed = false;

  constructor(options: SubscriberOptions) {
    this.#options = options;
    this.#proofPrefix = `proof ${fingerprint(options.connection.name).slice(0, 8)}`;
  }

  get hearing(): Hearing {
    return this.#hearing;
  }

  /** Whether all grants on the channel are ours. A clone of the machine has the same channel, and hears ours as we hear its. */
  get isAlone(): boolean {
    return this.#hearing === "proved" && this.#isAlone;
  }

  start(kind: ChannelKind): void {
    if (!this.#isClosed) {
      this.#kind = kind;
      this.#open();
      this.#retryIn(this.#options.timeoutMs); // a subscription may be swallowed without a word
    }
  }

  /** Proves anew, as the connection for commands may lead to another server now. */
  doubt(): void {
    if (this.#isUp) {
      this.#hearing = this.#hearing === "proved" ? "unproved" : this.#hearing;
      void this.#prove();
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
      up: () => {
        if (generation === this.#generation) {
          this.#isUp = true;
          this.#options.answered();
          void this.#prove();
        }
      },
      down: () => {
        if (generation === this.#generation) {
          this.#down();
        }
      },
      message: (text) => {
        if (text === this.#proof?.text) {
          this.#proof.heard();
        } else if (!this.#isClosed && !this.#isOurs(text)) {
          this.#options.heard(text);
        }
      },
    });
  }

  /** Published by this process: here, or on another server, of which this one is a replica. */
  #isOurs(text: string): boolean {
    const isProof = text.startsWith("proof ");
    return isProof && (!text.startsWith(this.#proofPrefix) || this.#ownProofs.includes(text));
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
    this.#hearing = "unproved";
    this.#proof = undefined;
    this.#options.lost();
    this.#retryIn(this.#options.timeoutMs); // its client may not try again
  }

  async #prove(): Promise<void> {
    const { clock, random, timeoutMs, publish } = this.#options;
    // A clone may draw the same id, but not at the same moment.
    const drawn = fingerprint(random.id(), String(clock.now()), String(clock.wall()));
    const text = this.#proofPrefix + drawn.slice(this.#proofPrefix.length - "proof ".length);
    this.#ownProofs.push(text);
    this.#ownProofs.splice(0, this.#ownProofs.length - rememberedProofs);
    clock.clearTimer(this.#retry);
    let timer: Timer;
    try {
      const heard = new Promise<true>((resolve) => {
        this.#proof = {
          text,
          heard: () => resolve(true),
        };
      });
      const tooLate = new Promise<false>((resolve) => {
        timer = clock.setTimer(() => resolve(false), timeoutMs);
      });
      const receivers = await publish(text);
      if (receivers === 0 || !(await Promise.race([heard, tooLate]))) {
        throw new Error(
          receivers === 0 ? "nobody receives on our channel" : "what we publish does not reach us",
        );
      }
      this.#isAlone = receivers === 1;
      this.#proved(text);
    } catch (error) {
      if (this.#proof?.text === text) {
        this.#failed(error);
      }
    } finally {
      clock.clearTimer(timer);
    }
  }

  #proved(text: string): void {
    if (this.#proof?.text === text && this.#isUp && !this.#isClosed) {
      this.#tries = 0;
      this.#proof = undefined;
      this.#hearing = "proved";
      tell("node", () => ({ node: this.#options.connection.name, event: "notifications-proved" }));
      this.#options.changed("proved");
    }
  }

  #failed(error: unknown): void {
    if (this.#isClosed) {
      return;
    }
    const { connection, random } = this.#options;
    this.#tries += 1;
    const delayMs = backoffMs(random, this.#tries, longestRetryMs);
    if (this.#hearing !== "unavailable" && (this.#tries >= triesBeforeUnavailable || !isTransient(error))) {
      this.#hearing = "unavailable";
      tell("node", () => ({
        node: connection.name,
        event: "notifications-unavailable",
        detail: String(error),
      }));
      this.#options.changed("unavailable");
      this.#openAnew(delayMs);
    } else if (!this.#isUp && this.#tries % triesBeforeUnavailable === 0) {
      this.#openAnew(delayMs);
    }
    this.#retryIn(delayMs);
  }

  /** A fresh connection may fare better. Where it is refused at once, the next one has to wait. */
  #openAnew(delayMs: number): void {
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
      if (this.#isUp && this.#hearing !== "proved") {
        void this.#prove();
      } else if (!this.#isUp) {
        this.#failed(new Error("the subscription was not confirmed"));
      }
    }, delayMs);
  }
}
