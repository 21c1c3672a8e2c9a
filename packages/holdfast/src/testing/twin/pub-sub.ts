import type { SubscriptionListener } from "../../drivers/redis/connection.ts";
import { noChannelPermission, ServerError } from "./server-error.ts";

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
    const id = kind + channel;
    const there = this.#subscribers.get(id) ?? new Set();
    this.#subscribers.set(id, there.add(listener));
  }

  remove(kind: Kind, channel: string, listener: SubscriptionListener): void {
    const there = this.#subscribers.get(kind + channel);
    there?.delete(listener);
    if (there?.size === 0) {
      this.#subscribers.delete(kind + channel);
    }
  }

  /** @returns how many receive it */
  publish(kind: Kind, channel: string, text: string): number {
    if (!this.mayPublish) {
      throw new ServerError(noChannelPermission);
    }
    const there = this.#subscribers.get(kind + channel) ?? new Set();
    if (there.size > 0 && !this.isDropped(text, channel)) {
      for (const listener of there) {
        queueMicrotask(() => {
          if (there.has(listener)) {
            listener.message(text);
          }
        });
      }
    }
    return there.size;
  }
}
