import type { Clock, Timer } from "../../../runtime/clock.ts";
import { jittered, type Random } from "../../../runtime/random.ts";
import type { ChannelKind, Subscription, SubscriptionListener } from "../clients/connection.ts";
import { isTransient } from "../server/errors.ts";
import { Ear } from "./channel-subscription.ts";
import type { Shard } from "./cluster-node.ts";

const shortestPauseMs = 20;
const longestPauseMs = 500;

/** What the subscriptions need of the router. */
interface Ways {
  find(slot: number): Promise<Shard>;
  refresh(): Promise<void>;
  learn(error: unknown, shard: Shard): boolean;
}

/** The channels that are heard, each where its slot is: when the slot is elsewhere, or its node failed, it is subscribed to anew. */
export class Ears {
  readonly #ways: Ways;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #bySlot = new Map<number, Set<Ear>>();
  readonly #lost = new Set<Ear>();
  #timer: Timer;
  #pauseMs = shortestPauseMs;
  #isClosed = false;

  constructor(ways: Ways, clock: Clock, random: Random) {
    this.#ways = ways;
    this.#clock = clock;
    this.#random = random;
  }

  slots(): Iterable<number> {
    return this.#bySlot.keys();
  }

  subscribe(slot: number, channel: string, kind: ChannelKind, listener: SubscriptionListener): Subscription {
    const ear = new Ear(slot, channel, kind, listener);
    const ears = this.#bySlot.get(slot) ?? new Set();
    this.#bySlot.set(slot, ears.add(ear));
    void this.#place(ear);
    return {
      close: () => {
        ear.isClosed = true;
        ears.delete(ear);
        if (ears.size === 0 && this.#bySlot.get(slot) === ears) {
          this.#bySlot.delete(slot);
        }
        this.#lost.delete(ear);
        ear.shard?.forget(ear);
      },
    };
  }

  /** The slot is elsewhere. */
  moved(slot: number): void {
    for (const ear of Array.from(this.#bySlot.get(slot) ?? [])) {
      ear.shard?.forget(ear);
      ear.down();
      void this.#place(ear);
    }
  }

  /** The connection of these was lost. */
  readonly deaf = (ears: readonly Ear[]): void => {
    for (const ear of ears) {
      ear.down();
      this.#lose(ear);
    }
  };

  close(): void {
    this.#isClosed = true;
    this.#clock.clearTimer(this.#timer);
    this.#lost.clear();
  }

  async #place(ear: Ear): Promise<void> {
    let shard: Shard | undefined;
    try {
      shard = await this.#ways.find(ear.slot);
      if (ear.isClosed || ear.shard === shard) {
        return;
      }
      ear.shard = shard;
      await shard.hear(ear);
      if (ear.shard === shard && !ear.isClosed) {
        this.#pauseMs = shortestPauseMs;
        ear.up();
      }
    } catch (error) {
      if (shard) {
        this.#ways.learn(error, shard);
      }
      if (ear.shard === shard) {
        ear.shard = undefined;
        this.#failed(ear, error);
      }
    }
  }

  /** What cannot pass by itself is for the subscriber to try again, who takes more time. */
  #failed(ear: Ear, error: unknown): void {
    if (isTransient(error)) {
      this.#lose(ear);
    } else if (!ear.isClosed) {
      ear.listener.down();
    }
  }

  #lose(ear: Ear): void {
    if (!ear.isClosed && !this.#isClosed) {
      this.#lost.add(ear);
      this.#timer ??= this.#clock.setTimer(this.#findAgain, jittered(this.#random, this.#pauseMs, 0.5));
    }
  }

  /** Asks who has which slot, and subscribes there. */
  readonly #findAgain = (): void => {
    this.#pauseMs = Math.min(longestPauseMs, this.#pauseMs * 2);
    void this.#ways
      .refresh()
      .catch(() => undefined)
      .then(() => {
        this.#timer = undefined;
        for (const ear of Array.from(this.#lost)) {
          this.#lost.delete(ear);
          void this.#place(ear);
        }
      });
  };
}
