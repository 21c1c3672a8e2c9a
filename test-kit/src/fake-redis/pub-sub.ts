import type { SubscriptionListener } from "holdfast/redis";

import { fromBytes, toBytes } from "./bytes.ts";

/** `s` sharded, `p` plain: two separate namespaces of channels. */
export type Kind = "s" | "p";

/** Returns true for a message that is lost on its way. Its subscribers count as receivers nevertheless. */
export type MessagePredicate = (text: string, channel: string) => boolean;

/** Delivers each message at most once, and only to the subscribers at the time of publication. */
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

  /**
   * @param channel a text of bytes, like `text`
   * @returns the number of receivers
   */
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
