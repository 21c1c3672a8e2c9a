import type { Clock, Timer } from "../../../runtime/clock.ts";
import { evalScript } from "../clients/connection.ts";
import type { Script } from "../protocol/script.ts";
import { ServerClock, type TicketCounter } from "../server/server-clock.ts";
import type { SlotSubscription } from "./channel-subscription.ts";
import { ReconnectingLink } from "./reconnecting-link.ts";
import type { ClusterClient } from "../clients/cluster-client.ts";

/** Receives the events of a node. */
export interface ClusterNodeListener {
  /** The command connection was lost. */
  disconnected(node: ClusterNode): void;
  /** The connection of these subscriptions was lost. */
  unsubscribed(subscriptions: readonly SlotSubscription[]): void;
  /** The server itself ended a subscription. */
  dropped(node: ClusterNode): void;
  /** Calls are in flight, and the node has not replied for some time. */
  unresponsive(node: ClusterNode): void;
}

interface ClusterNodeOptions {
  readonly client: ClusterClient;
  readonly clock: Clock;
  readonly address: string;
  /** How long a connection may take to open, ms. */
  readonly timeoutMs: number;
  readonly tickets: TicketCounter;
  readonly listener: ClusterNodeListener;
}

/** A node without a reply for this fraction of `commandTimeoutMs` may have been replaced. */
const maxSilenceFactor = 0.25;

/** One node of a cluster: its command connection, its notification connection, and its clock. Knows no slots. */
export class ClusterNode {
  readonly address: string;
  readonly serverClock: ServerClock;
  readonly #commands: ReconnectingLink;
  readonly #messages: ReconnectingLink;
  readonly #subscriptions = new Map<string, SlotSubscription>();
  /** The scripts that this node is loading, because thousands of slots may need the same script at once. */
  readonly #loadingScripts = new Map<string, Promise<unknown>>();

  readonly #clock: Clock;
  readonly #maxSilentMs: number;
  readonly #listener: ClusterNodeListener;
  #inFlight = 0;
  #repliedAt = 0;
  #watching: Timer;
  #isClosed = false;

  constructor({ listener, tickets, ...options }: ClusterNodeOptions) {
    this.address = options.address;
    this.#clock = options.clock;
    this.#maxSilentMs = options.timeoutMs * maxSilenceFactor;
    this.#listener = listener;
    this.serverClock = new ServerClock(options.clock, tickets);
    const nothing = (): void => undefined;
    this.#commands = new ReconnectingLink({
      ...options,
      listener: {
        message: nothing,
        dropped: nothing,
        ended: () => {
          this.serverClock.invalidate();
          listener.disconnected(this);
        },
      },
    });
    this.#messages = new ReconnectingLink({
      ...options,
      listener: {
        message: (channel, text) => this.#subscriptions.get(channel)?.listener.message(text),
        dropped: () => listener.dropped(this),
        ended: () => {
          const subscriptions = Array.from(this.#subscriptions.values());
          this.#subscriptions.clear();
          listener.unsubscribed(subscriptions);
        },
      },
    });
  }

  async run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const link = await this.#commands.connection();
    const send = (name: string, rest: string[]): Promise<unknown> => link.send(name, rest);
    this.#callSent();
    try {
      return await evalScript(send, script, keys, args, this.#loadingScripts);
    } finally {
      this.#inFlight -= 1;
      this.#repliedAt = this.#clock.now();
    }
  }

  async command(name: string, args: readonly string[]): Promise<unknown> {
    return (await this.#commands.connection()).send(name, [...args]);
  }

  /** Resolves when the server has confirmed it. */
  async addSubscription(subscription: SlotSubscription): Promise<void> {
    this.#subscriptions.set(subscription.channel, subscription);
    try {
      await (await this.#messages.connection()).subscribe(subscription.channel, subscription.kind);
    } catch (error) {
      this.#dropSubscription(subscription);
      throw error;
    }
  }

  removeSubscription(subscription: SlotSubscription): void {
    if (this.#dropSubscription(subscription) && this.#messages.isOpen) {
      this.#messages.connection().then(
        (link) => link.unsubscribe(subscription.channel, subscription.kind),
        () => undefined,
      );
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#clock.clearTimer(this.#watching);
    this.#commands.close();
    this.#messages.close();
  }

  /** A call is sent. */
  #callSent(): void {
    if (this.#inFlight === 0) {
      this.#repliedAt = this.#clock.now();
    }
    this.#inFlight += 1;
    this.#watching ??= this.#clock.setTimer(this.#checkSilence, this.#maxSilentMs);
  }

  readonly #checkSilence = (): void => {
    this.#watching = undefined;
    if (this.#inFlight > 0 && !this.#isClosed) {
      if (this.#clock.now() - this.#repliedAt >= this.#maxSilentMs) {
        this.#listener.unresponsive(this);
      }
      this.#watching = this.#clock.setTimer(this.#checkSilence, this.#maxSilentMs);
    }
  };

  #dropSubscription(subscription: SlotSubscription): boolean {
    return (
      this.#subscriptions.get(subscription.channel) === subscription &&
      this.#subscriptions.delete(subscription.channel)
    );
  }
}
