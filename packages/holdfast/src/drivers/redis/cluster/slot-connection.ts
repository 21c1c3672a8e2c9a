import type { ChannelKind, Connection, Subscription, SubscriptionListener } from "../clients/connection.ts";
import type { Script } from "../protocol/script.ts";
import type { Router } from "./router.ts";

/** A connection to the node of one slot. */
export class SlotConnection implements Connection {
  readonly keyPrefix = "";
  readonly #router: Router;
  readonly #slot: number;

  constructor(router: Router, slot: number) {
    this.#router = router;
    this.#slot = slot;
  }

  get name(): string {
    return this.#router.map.ownerOf(this.#slot) ?? "cluster";
  }

  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.#router.run(this.#slot, script, keys, args);
  }

  command(name: string, args: readonly string[]): Promise<unknown> {
    return this.#router.command(this.#slot, name, args);
  }

  subscribe(channel: string, kind: ChannelKind, listener: SubscriptionListener): Subscription {
    return this.#router.subscriptions.subscribe(this.#slot, channel, kind, listener);
  }

  onDown(listener: () => void): () => void {
    return this.#router.onDown(this.#slot, listener);
  }
}
