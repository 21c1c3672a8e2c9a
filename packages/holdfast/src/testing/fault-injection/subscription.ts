import type { SubscriptionListener } from "../../drivers/redis/clients/connection.ts";
import type { DelayedLink } from "./delayed-link.ts";
import type { FaultPlan } from "./fault-plan.ts";

/** Stands between a subscription and who listens to it. */
export class FaultySubscription implements SubscriptionListener {
  readonly link: DelayedLink;
  readonly #channel: string;
  readonly #listener: SubscriptionListener;
  readonly #plan: FaultPlan;
  #isConnected = false;
  #isDropped = false;
  #isClosed = false;

  constructor(lane: DelayedLink, channel: string, listener: SubscriptionListener, plan: FaultPlan) {
    this.link = lane;
    this.#channel = channel;
    this.#listener = listener;
    this.#plan = plan;
  }

  connected(): void {
    this.#isConnected = true;
    if (!this.#isDropped) {
      this.#deliverLater(() => this.#listener.connected());
    }
  }

  disconnected(): void {
    this.#isConnected = false;
    if (!this.#isDropped) {
      this.#deliverLater(() => this.#listener.disconnected());
    }
  }

  message(text: string): void {
    if (!this.#isDropped && !this.#plan.isMessageDropped(text, this.#channel)) {
      this.#deliverLater(() => this.#listener.message(text), this.#plan.messageMs);
    }
  }

  /** Down, and up again when what runs now has come to rest; what is published in between is not heard. */
  drop(): void {
    if (this.#isDropped || this.#isClosed) {
      return;
    }
    this.disconnected();
    this.#isConnected = true;
    this.#isDropped = true;
    queueMicrotask(() => {
      this.#isDropped = false;
      if (this.#isConnected) {
        this.connected();
      }
    });
  }

  close(): void {
    this.#isClosed = true;
  }

  #deliverLater(deliver: () => void, delayMs = 0): void {
    this.link.send(() => {
      if (!this.#isClosed) {
        deliver();
      }
    }, delayMs);
  }
}
