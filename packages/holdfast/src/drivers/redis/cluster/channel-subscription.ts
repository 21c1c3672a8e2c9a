import type { ChannelKind, SubscriptionListener } from "../clients/connection.ts";
import type { ClusterNode } from "./cluster-node.ts";

/** A channel that is to be heard, wherever its slot is. */
export class SlotSubscription {
  readonly slot: number;
  readonly channel: string;
  readonly kind: ChannelKind;
  readonly listener: SubscriptionListener;
  /** Where it listens, or is about to. */
  node: ClusterNode | undefined;
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

  /** Tells of it only once. */
  down(): void {
    this.node = undefined;
    if (this.#isUp) {
      this.#isUp = false;
      this.listener.disconnected();
    }
  }
}
