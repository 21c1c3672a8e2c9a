import type { Connection, Subscription } from "holdfast/redis";

import type { LateRequests } from "./late-requests.ts";
import type { VirtualClock } from "./virtual-clock.ts";

/** The origin of an event: a call of a node, a subscription, the connection itself, or the program of the process. */
type EventSource = "reply" | "message" | "connection" | "program";

/** All events reach a process through its gate. The gate is closed while the process is frozen, and after the process has died. */
export class ProcessGate {
  readonly #world: VirtualClock;
  #delayed: { readonly action: () => void; readonly source: EventSource }[] = [];
  readonly #subscriptions: Subscription[] = [];
  /** How many scripts and commands the process has sent. */
  sent = 0;
  /** How many listeners and subscriptions the process has not removed. */
  listeners = 0;
  #isClosed = false;
  #isDestroyed = false;
  #intercept: { readonly source: EventSource; readonly handler: (event: () => void) => void } | undefined;

  constructor(world: VirtualClock) {
    this.#world = world;
  }

  get isOpen(): boolean {
    return !this.#isClosed && !this.#isDestroyed;
  }

  pass(action: () => void, source: EventSource = "program"): void {
    const intercept = this.#intercept;
    if (this.isOpen && intercept !== undefined && intercept.source === source) {
      this.#intercept = undefined;
      intercept.handler(action);
    } else if (this.isOpen) {
      action();
    } else if (!this.#isDestroyed) {
      this.#delayed.push({ action, source });
    }
  }

  /** The next event of this source goes to the handler. */
  interceptNext(source: EventSource, handler: (event: () => void) => void): void {
    this.#intercept = { source, handler };
  }

  close(): void {
    this.#isClosed = true;
  }

  /** Delivers the delayed events now, in their order. */
  open(): void {
    this.#isClosed = false;
    for (const { action, source } of this.#delayed.splice(0)) {
      this.#world.at(this.#world.now, () => {
        this.pass(action, source);
      });
    }
  }

  /** @param keepsConnections the connections stay open, as after a power failure */
  destroy(keepsConnections: boolean): void {
    this.#isDestroyed = true;
    this.#delayed = [];
    for (const subscription of keepsConnections ? [] : this.#subscriptions) {
      subscription.close();
    }
  }

  addSubscription(subscription: Subscription): Subscription {
    this.#subscriptions.push(subscription);
    const ended = this.addListener();
    return {
      close: () => {
        ended();
        subscription.close();
      },
    };
  }

  /** @returns removes the listener */
  addListener(): () => void {
    let isRemoved = false;
    this.listeners += 1;
    return () => {
      this.listeners -= isRemoved ? 0 : 1;
      isRemoved = true;
    };
  }
}

/** The connection of a process. Replies and notifications pass the gate of the process. */
export function gatedConnection(connection: Connection, gate: ProcessGate, late: LateRequests): Connection {
  const through = <T>(reply: Promise<T>): Promise<T> => {
    gate.sent += 1;
    return new Promise((resolve, reject) => {
      reply.then(
        (value) => {
          gate.pass(() => {
            resolve(value);
          }, "reply");
        },
        (error: unknown) => {
          gate.pass(() => {
            reject(error as Error);
          }, "reply");
        },
      );
    });
  };
  return {
    keyPrefix: connection.keyPrefix,
    name: connection.name,
    run: (script, keys, args) => through(late.send(args, () => connection.run(script, keys, args))),
    command: (name, args) => through(connection.command(name, args)),
    subscribe: (channel, kind, listener) =>
      gate.addSubscription(
        connection.subscribe(channel, kind, {
          connected: () => {
            gate.pass(() => {
              listener.connected();
            }, "connection");
          },
          disconnected: () => {
            gate.pass(() => {
              listener.disconnected();
            }, "connection");
          },
          message: (text) => {
            gate.pass(() => {
              listener.message(text);
            }, "message");
          },
        }),
      ),
    onDown: (listener) => {
      const stop = connection.onDown(() => {
        gate.pass(listener, "connection");
      });
      const ended = gate.addListener();
      return () => {
        ended();
        stop();
      };
    },
  };
}
