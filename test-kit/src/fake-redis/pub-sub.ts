import type { SubscriptionListener } from "holdfast/redis";

import { fromBytes, toBytes } from "./bytes.ts";

/** `s` sharded, `p` plain: two spaces of channels that know nothing of each other. */
export type Kind = "s" | "p";

/** Says of a message whether it is to be lost on its way to the subscribers, who are counted all the same. */
export type MessagePredicate = (text: string, channel: string) => boolean;

/** Who hears what is published: at most once, and only who is there at that moment. */
export class PubSub {
  mayPublish = true;
  isDropped: MessagePredicate = () => false;
  readonly #subscribers = new Map<string, Set<SubscriptionListener>>();

  add(kind: Kind, channel: string, listener: SubscriptionListener): void {
    const id = kind + toBytes(channel);
    const listeners = this.#subscribers.get(id) ?? new Set();
    this.#subscribers.set(id, listeners.add(listener));
  }

  remove(kind: Kind, channel: string, listener: SubscriptionListener): void {
    const id = kind + toBytes(channel);
    const listeners = this.#subscribers.get(id);
    listeners?.delete(listener);
    if (listeners?.size === 0) {
      this.#subscribers.delete(id);
    }
  }

  /** @param channel of bytes, as the text @returns how many receive it */
  publish(kind: Kind, channel: string, text: string): number {
    const listeners = this.#subscribers.get(kind + channel) ?? new Set();
    const message = fromBytes(text);
    if (listeners.size > 0 && !this.isDropped(message, fromBytes(channel))) {
      for (const listener of listeners) {
        queueMicrotask(() => {
          if (listeners.has(listener)) {
            listener.message(message);
          }
        });
      }
    }
    return listeners.size;
  }
}
