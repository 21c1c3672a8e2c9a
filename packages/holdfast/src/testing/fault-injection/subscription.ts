import type { SubscriptionListener } from "../../drivers/redis/clients/connection.ts";
import type { DelayedLink } from "./delayed-link.ts";
import type { FaultPlan } from "./fault-plan.ts";

/** Stands between a subscription and who listens to it. */
export class FaultySubscription implements SubscriptionListener {
  readonly lane: DelayedLink;
  readonly #channel: string;
  readonly #listener: SubscriptionListener;
  readonly #plan: FaultPlan;
  #isUp = false;
  #isCut = false;
  #isClosed = false;

  constructor(lane: DelayedLink, channel: string, listener: SubscriptionListener, plan: FaultPlan) {
    this.lane = lane;
    this.#channel = channel;
    this.#listener = listener;
    this.#plan = plan;
  }

  up(): void {
    this.#isUp = true;
    if (!this.#isCut) {
      this.#pass(() => this.#listener.up());
    }
  }

  down(): void {
    this.#isUp = false;
    if (!this.#isCut) {
      this.#pass(() => this.#listener.down());
    }
  }

  message(text: string): void {
    if (!this.#isCut && !this.#plan.isMessageDropped(text, this.#channel)) {
      this.#pass(() => this.#listener.message(text), this.#plan.messageMs);
    }
  }

  /** Down, and up again when what runs now has come to rest; what is published in between is not heard. */
  drop(): void {
    if (this.#isCut || this.#isClosed) {
      return;
    }
    this.down();
    this.#isUp = true;
    this.#isCut = true;
    queueMicrotask(() => {
      this.#isCut = false;
      if (this.#isUp) {
        this.up();
      }
    });
  }

  close(): void {
    this.#isClosed = true;
  }

  #pass(tell: () => void, delayMs = 0): void {
    this.lane.send(() => {
      if (!this.#isClosed) {
        tell();
      }
    }, delayMs);
  }
}
