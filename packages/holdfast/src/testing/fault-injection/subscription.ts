import { asMicrotask } from "../../runtime/clock.ts";
import type { SubscriptionListener } from "../../drivers/redis/clients/connection.ts";
import type { DelayedLink } from "./delayed-link.ts";
import type { FaultPlan } from "./fault-plan.ts";

/** A listener of a subscription that passes events to another listener, with injected faults. */
export class FaultySubscription implements SubscriptionListener {
  readonly link: DelayedLink;
  readonly #channel: string;
  readonly #listener: SubscriptionListener;
  readonly #plan: FaultPlan;
  #isConnected = false;
  #isDropped = false;
  #isClosed = false;

  constructor(link: DelayedLink, channel: string, listener: SubscriptionListener, plan: FaultPlan) {
    this.link = link;
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

  /** Disconnects, and reconnects in a later microtask. Notifications published in between are lost. */
  drop(): void {
    if (this.#isDropped || this.#isClosed) {
      return;
    }
    this.disconnected();
    this.#isConnected = true;
    this.#isDropped = true;
    asMicrotask(() => {
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
