import type { Connection, Subscription } from "holdfast/redis";

import type { VirtualClock } from "./virtual-clock.ts";

/** All events reach a process through its gate. The gate is closed while the process is frozen, and after the process has died. */
export class ProcessGate {
  readonly #world: VirtualClock;
  #delayed: (() => void)[] = [];
  readonly #subscriptions: Subscription[] = [];
  /** How many scripts and commands the process has sent. */
  sent = 0;
  /** How many listeners and subscriptions the process has not removed. */
  listeners = 0;
  #isClosed = false;
  #isDestroyed = false;

  constructor(world: VirtualClock) {
    this.#world = world;
  }

  get isOpen(): boolean {
    return !this.#isClosed && !this.#isDestroyed;
  }

  pass(action: () => void): void {
    if (this.isOpen) {
      action();
    } else if (!this.#isDestroyed) {
      this.#delayed.push(action);
    }
  }

  close(): void {
    this.#isClosed = true;
  }

  /** Delivers the delayed events now, in their order. */
  open(): void {
    this.#isClosed = false;
    for (const action of this.#delayed.splice(0)) {
      this.#world.at(this.#world.now, () => {
        this.pass(action);
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
export function gatedConnection(connection: Connection, gate: ProcessGate): Connection {
  const through = <T>(reply: Promise<T>): Promise<T> => {
    gate.sent += 1;
    return new Promise((resolve, reject) => {
      reply.then(
        (value) => {
          gate.pass(() => {
            resolve(value);
          });
        },
        (error: unknown) => {
          gate.pass(() => {
            reject(error as Error);
          });
        },
      );
    });
  };
  return {
    keyPrefix: connection.keyPrefix,
    name: connection.name,
    run: (script, keys, args) => through(connection.run(script, keys, args)),
    command: (name, args) => through(connection.command(name, args)),
    subscribe: (channel, kind, listener) =>
      gate.addSubscription(
        connection.subscribe(channel, kind, {
          connected: () => {
            gate.pass(() => {
              listener.connected();
            });
          },
          disconnected: () => {
            gate.pass(() => {
              listener.disconnected();
            });
          },
          message: (text) => {
            gate.pass(() => {
              listener.message(text);
            });
          },
        }),
      ),
    onDown: (listener) => {
      const stop = connection.onDown(() => {
        gate.pass(listener);
      });
      const ended = gate.addListener();
      return () => {
        ended();
        stop();
      };
    },
  };
}
