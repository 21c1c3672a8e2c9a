import type { Clock, Timer } from "../../../runtime/clock.ts";
import { jittered, type Random } from "../../../runtime/random.ts";
import type { ChannelKind, Subscription, SubscriptionListener } from "../clients/connection.ts";
import { isTransient } from "../server/errors.ts";
import { SlotSubscription } from "./channel-subscription.ts";
import type { ClusterNode } from "./cluster-node.ts";

const minPauseMs = 20;
const maxPauseMs = 500;

/** The router, as the subscriptions need it. */
interface Routes {
  find(slot: number): Promise<ClusterNode>;
  refresh(): Promise<void>;
  handleRedirect(error: unknown, node: ClusterNode): boolean;
}

/** The subscriptions of a cluster, each on the node of its slot. If the slot moves or its node fails, the subscription is opened again. */
export class ClusterSubscriptions {
  readonly #routes: Routes;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #bySlot = new Map<number, Set<SlotSubscription>>();
  readonly #lost = new Set<SlotSubscription>();
  #timer: Timer;
  #pauseMs = minPauseMs;
  #isClosed = false;

  constructor(routes: Routes, clock: Clock, random: Random) {
    this.#routes = routes;
    this.#clock = clock;
    this.#random = random;
  }

  slots(): Iterable<number> {
    return this.#bySlot.keys();
  }

  subscribe(slot: number, channel: string, kind: ChannelKind, listener: SubscriptionListener): Subscription {
    const subscription = new SlotSubscription(slot, channel, kind, listener);
    const subscriptions = this.#bySlot.get(slot) ?? new Set();
    this.#bySlot.set(slot, subscriptions.add(subscription));
    void this.#attach(subscription);
    return {
      close: () => {
        subscription.isClosed = true;
        subscriptions.delete(subscription);
        if (subscriptions.size === 0 && this.#bySlot.get(slot) === subscriptions) {
          this.#bySlot.delete(slot);
        }
        this.#lost.delete(subscription);
        subscription.node?.removeSubscription(subscription);
      },
    };
  }

  /** The slot has moved to another node. */
  moved(slot: number): void {
    for (const subscription of Array.from(this.#bySlot.get(slot) ?? [])) {
      subscription.node?.removeSubscription(subscription);
      subscription.down();
      void this.#attach(subscription);
    }
  }

  /** The connection of these subscriptions was lost. */
  readonly unsubscribed = (subscriptions: readonly SlotSubscription[]): void => {
    for (const subscription of subscriptions) {
      subscription.down();
      this.#lose(subscription);
    }
  };

  close(): void {
    this.#isClosed = true;
    this.#clock.clearTimer(this.#timer);
    this.#lost.clear();
  }

  async #attach(subscription: SlotSubscription): Promise<void> {
    let node: ClusterNode | undefined;
    try {
      node = await this.#routes.find(subscription.slot);
      if (subscription.isClosed || subscription.node === node) {
        return;
      }
      subscription.node = node;
      await node.addSubscription(subscription);
      if (subscription.node === node && !subscription.isClosed) {
        this.#pauseMs = minPauseMs;
        subscription.up();
      }
    } catch (error) {
      if (node) {
        this.#routes.handleRedirect(error, node);
      }
      if (subscription.node === node) {
        subscription.node = undefined;
        this.#failed(subscription, error);
      }
    }
  }

  /** After a permanent failure the subscriber retries, with longer pauses. */
  #failed(subscription: SlotSubscription, error: unknown): void {
    if (isTransient(error)) {
      this.#lose(subscription);
    } else if (!subscription.isClosed) {
      subscription.listener.disconnected();
    }
  }

  #lose(subscription: SlotSubscription): void {
    if (!subscription.isClosed && !this.#isClosed) {
      this.#lost.add(subscription);
      this.#timer ??= this.#clock.setTimer(this.#retry, jittered(this.#random, this.#pauseMs, 0.5));
    }
  }

  /** Loads the map of slots, and opens the lost subscriptions again. */
  readonly #retry = (): void => {
    this.#pauseMs = Math.min(maxPauseMs, this.#pauseMs * 2);
    void this.#routes
      .refresh()
      .catch(() => undefined)
      .then(() => {
        this.#timer = undefined;
        for (const subscription of Array.from(this.#lost)) {
          this.#lost.delete(subscription);
          void this.#attach(subscription);
        }
      });
  };
}
