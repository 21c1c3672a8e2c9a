import type { Clock } from "../../runtime/clock.ts";
import type {
  ChannelKind,
  Connection,
  Subscription,
  SubscriptionListener,
} from "../../drivers/redis/clients/connection.ts";
import type { Script } from "../../drivers/redis/protocol/script.ts";
import { DelayedLink } from "./delayed-link.ts";
import type { InterceptedCall, FaultChoice, FaultPlan } from "./fault-plan.ts";
import { FaultySubscription } from "./subscription.ts";

/** A connection with injected faults. */
export class FaultyConnection implements Connection {
  readonly plan: FaultPlan = {
    requestMs: 0,
    replyMs: 0,
    messageMs: 0,
    lostReplies: 0,
    lossMode: "silence",
    refusal: null,
    refusals: 0,
    duplicates: 0,
    duplicatesAfterMs: 0,
    isMessageDropped: () => false,
  };
  readonly #inner: Connection;
  readonly #clock: Clock;
  readonly #requests: DelayedLink;
  readonly #replies: DelayedLink;
  readonly #downListeners = new Set<() => void>();
  readonly #subscriptions = new Set<FaultySubscription>();
  #isFrozen = false;

  constructor(inner: Connection, clock: Clock) {
    this.#inner = inner;
    this.#clock = clock;
    this.#requests = new DelayedLink(clock);
    this.#replies = new DelayedLink(clock);
  }

  get keyPrefix(): string {
    return this.#inner.keyPrefix;
  }

  get name(): string {
    return this.#inner.name;
  }

  get hasPlainChannelsOnly(): boolean {
    return this.#inner.hasPlainChannelsOnly === true;
  }

  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.#intercept({ script: script.name, keys, args }, () => this.#inner.run(script, keys, args));
  }

  command(name: string, args: readonly string[]): Promise<unknown> {
    return this.#intercept({ script: name, keys: [], args }, () => this.#inner.command(name, args));
  }

  subscribe(channel: string, kind: ChannelKind, listener: SubscriptionListener): Subscription {
    const link = new DelayedLink(this.#clock);
    const subscription = new FaultySubscription(link, channel, listener, this.plan);
    if (this.#isFrozen) {
      link.freeze();
    }
    this.#subscriptions.add(subscription);
    const inner = this.#inner.subscribe(channel, kind, subscription);
    return {
      close: () => {
        this.#subscriptions.delete(subscription);
        subscription.close();
        inner.close();
      },
    };
  }

  onDown(listener: () => void): () => void {
    const notify = (): void => listener();
    this.#downListeners.add(notify);
    const stop = this.#inner.onDown(() => this.#replies.send(notify, 0));
    return () => {
      this.#downListeners.delete(notify);
      stop();
    };
  }

  setFrozen(isFrozen: boolean): void {
    this.#isFrozen = isFrozen;
    const links = [this.#requests, this.#replies, ...Array.from(this.#subscriptions, ({ link }) => link)];
    for (const link of links) {
      if (isFrozen) {
        link.freeze();
      } else {
        link.thaw();
      }
    }
  }

  dropSubscriptions(): void {
    for (const subscription of Array.from(this.#subscriptions)) {
      subscription.drop();
    }
  }

  #intercept(call: InterceptedCall, send: () => Promise<unknown>): Promise<unknown> {
    const refusal = this.#nextRefusal();
    if (refusal) {
      return Promise.reject(refusal);
    }
    const isDuplicated = this.#isChosen("duplicates", call);
    return new Promise((resolve, reject) => {
      this.#requests.send(() => {
        if (isDuplicated) {
          this.#sendDuplicate(send);
        }
        send().then(
          (reply) => this.#reply(call, reject, () => resolve(reply)),
          (error: unknown) => this.#reply(call, reject, () => reject(error as Error)),
        );
      }, this.plan.requestMs);
    });
  }

  /** The server performs the request again, and its second reply is dropped. */
  #sendDuplicate(send: () => Promise<unknown>): void {
    this.#clock.setTimer(
      () => this.#requests.send(() => void send().catch(() => undefined), 0),
      this.plan.duplicatesAfterMs,
    );
  }

  #nextRefusal(): Error | null {
    const { plan } = this;
    if (plan.refusal === null || plan.refusals <= 0) {
      return null;
    }
    plan.refusals -= 1;
    return plan.refusal;
  }

  #reply(call: InterceptedCall, reject: (error: Error) => void, deliver: () => void): void {
    if (!this.#isChosen("lostReplies", call)) {
      this.#replies.send(deliver, this.plan.replyMs);
    } else if (this.plan.lossMode === "reset") {
      this.#replies.send(() => {
        for (const listener of Array.from(this.#downListeners)) {
          listener();
        }
        reject(new Error("Connection is closed."));
      }, this.plan.replyMs);
    }
  }

  #isChosen(fault: "lostReplies" | "duplicates", call: InterceptedCall): boolean {
    const choice: FaultChoice = this.plan[fault];
    if (typeof choice === "function") {
      return choice(call);
    }
    this.plan[fault] = Math.max(0, choice - 1);
    return choice > 0;
  }
}
