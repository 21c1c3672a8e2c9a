import type { ChannelKind, SubscriptionListener } from "../clients/connection.ts";

/** A node of the cluster, as a subscription needs it. */
export interface SubscriptionNode {
  addSubscription(subscription: SlotSubscription): Promise<void>;
  removeSubscription(subscription: SlotSubscription): void;
}

/** The subscription to the channel of one slot. The subscription follows the slot from node to node. */
export class SlotSubscription {
  readonly slot: number;
  readonly channel: string;
  readonly kind: ChannelKind;
  readonly listener: SubscriptionListener;
  /** The node that has the subscription, or is about to have it. */
  node: SubscriptionNode | undefined;
  isClosed = false;
  #isUp = false;

  constructor(slot: number, channel: string, kind: ChannelKind, listener: SubscriptionListener) {
    this.slot = slot;
    this.channel = channel;
    this.kind = kind;
    this.listener = listener;
  }

  up(): void {
    this.#isUp = true;
    this.listener.connected();
  }

  /** Reports the loss to the listener only once. */
  down(): void {
    this.node = undefined;
    if (this.#isUp) {
      this.#isUp = false;
      this.listener.disconnected();
    }
  }
}
