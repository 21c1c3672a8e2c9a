import type { Connection, Subscription } from "holdfast/redis";

import type { VirtualClock } from "./virtual-clock.ts";

/** Through it everything reaches one process. Closed while the process is frozen, for ever once it is dead. */
export class ProcessGate {
  readonly #world: VirtualClock;
  #heldBack: (() => void)[] = [];
  readonly #subscriptions: Subscription[] = [];
  /** How many scripts and commands the process has sent. */
  sent = 0;
  /** Listeners and subscriptions that it has not ended. */
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
      this.#heldBack.push(action);
    }
  }

  close(): void {
    this.#isClosed = true;
  }

  /** What was held back comes now, late, in order. */
  open(): void {
    this.#isClosed = false;
    for (const action of this.#heldBack.splice(0)) {
      this.#world.at(this.#world.now, () => {
        this.pass(action);
      });
    }
  }

  /** @param keepsConnections its connections stay, as where a machine lost its power */
  destroy(keepsConnections: boolean): void {
    this.#isDestroyed = true;
    this.#heldBack = [];
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

  /** @returns to be called when it ends */
  addListener(): () => void {
    let isOver = false;
    this.listeners += 1;
    return () => {
      this.listeners -= isOver ? 0 : 1;
      isOver = true;
    };
  }
}

/** The connection of a process: what it hears passes its gate. */
export function gatedConnection(connection: Connection, gate: ProcessGate): Connection {
  const through = <T>(answer: Promise<T>): Promise<T> => {
    gate.sent += 1;
    return new Promise((resolve, reject) => {
      answer.then(
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
