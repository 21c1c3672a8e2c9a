import type { Clock, Timer } from "../../../runtime/clock.ts";
import { evaluate } from "../clients/connection.ts";
import type { Script } from "../protocol/script.ts";
import { ServerTime, type Tickets } from "../server/server-clock.ts";
import type { Ear } from "./channel-subscription.ts";
import { Lane } from "./reconnecting-link.ts";
import type { ClusterClient } from "../clients/cluster-client.ts";

/** Who is told of a shard. */
export interface ShardListener {
  /** The connection for commands was lost. */
  cut(shard: Shard): void;
  /** These channels are not heard any more. */
  deaf(ears: readonly Ear[]): void;
  /** The server itself ended a subscription. */
  dropped(shard: Shard): void;
  /** It has not answered for a while, and is still asked. */
  silent(shard: Shard): void;
}

interface ShardOptions {
  readonly client: ClusterClient;
  readonly clock: Clock;
  readonly address: string;
  /** How long a connection may take to be there, ms. */
  readonly patienceMs: number;
  readonly tickets: Tickets;
  readonly listener: ShardListener;
}

/** A node that lets calls wait so long, as part of what a command may take, may have been replaced. */
const silence = 0.25;

/** One node of a cluster: a connection for commands, one for messages, and its time. Knows nothing of slots. */
export class Shard {
  readonly address: string;
  readonly time: ServerTime;
  readonly #commands: Lane;
  readonly #messages: Lane;
  readonly #ears = new Map<string, Ear>();
  /** The scripts that this node is being sent: thousands of slots may need the same one at once. */
  readonly #taught = new Map<string, Promise<unknown>>();

  readonly #clock: Clock;
  readonly #silentMs: number;
  readonly #listener: ShardListener;
  #underWay = 0;
  #heardAt = 0;
  #watching: Timer;
  #isClosed = false;

  constructor({ listener, tickets, ...options }: ShardOptions) {
    this.address = options.address;
    this.#clock = options.clock;
    this.#silentMs = options.patienceMs * silence;
    this.#listener = listener;
    this.time = new ServerTime(options.clock, tickets);
    const nothing = (): void => undefined;
    this.#commands = new Lane({
      ...options,
      listener: {
        message: nothing,
        dropped: nothing,
        ended: () => {
          this.time.doubt();
          listener.cut(this);
        },
      },
    });
    this.#messages = new Lane({
      ...options,
      listener: {
        message: (channel, text) => this.#ears.get(channel)?.listener.message(text),
        dropped: () => listener.dropped(this),
        ended: () => {
          const ears = Array.from(this.#ears.values());
          this.#ears.clear();
          listener.deaf(ears);
        },
      },
    });
  }

  async run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const link = await this.#commands.link();
    const send = (name: string, rest: string[]): Promise<unknown> => link.send(name, rest);
    this.#begin();
    try {
      return await evaluate(send, script, keys, args, this.#taught);
    } finally {
      this.#underWay -= 1;
      this.#heardAt = this.#clock.now();
    }
  }

  async command(name: string, args: readonly string[]): Promise<unknown> {
    return (await this.#commands.link()).send(name, [...args]);
  }

  /** Resolves when the server has confirmed it. */
  async hear(ear: Ear): Promise<void> {
    this.#ears.set(ear.channel, ear);
    try {
      await (await this.#messages.link()).subscribe(ear.channel, ear.kind);
    } catch (error) {
      this.#forget(ear);
      throw error;
    }
  }

  forget(ear: Ear): void {
    if (this.#forget(ear) && this.#messages.isOpen) {
      this.#messages.link().then(
        (link) => link.unsubscribe(ear.channel, ear.kind),
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

  /** One more call is under way. */
  #begin(): void {
    if (this.#underWay === 0) {
      this.#heardAt = this.#clock.now();
    }
    this.#underWay += 1;
    this.#watching ??= this.#clock.setTimer(this.#look, this.#silentMs);
  }

  readonly #look = (): void => {
    this.#watching = undefined;
    if (this.#underWay > 0 && !this.#isClosed) {
      if (this.#clock.now() - this.#heardAt >= this.#silentMs) {
        this.#listener.silent(this);
      }
      this.#watching = this.#clock.setTimer(this.#look, this.#silentMs);
    }
  };

  #forget(ear: Ear): boolean {
    return this.#ears.get(ear.channel) === ear && this.#ears.delete(ear.channel);
  }
}
