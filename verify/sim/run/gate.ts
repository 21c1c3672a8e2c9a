import type { Connection, Subscription } from "holdfast/redis";

import type { WorldClock } from "./virtual-clock.ts";

/** Through it everything reaches one process. Closed while the process is frozen, for ever once it is dead. */
export class Gate {
  readonly #world: WorldClock;
  #held: (() => void)[] = [];
  readonly #subscriptions: Subscription[] = [];
  /** How many scripts and commands the process has sent. */
  sent = 0;
  /** Listeners and subscriptions that it has not ended. */
  listeners = 0;
  #isClosed = false;
  #isGone = false;

  constructor(world: WorldClock) {
    this.#world = world;
  }

  get isOpen(): boolean {
    return !this.#isClosed && !this.#isGone;
  }

  pass(action: () => void): void {
    if (this.isOpen) {
      action();
    } else if (!this.#isGone) {
      this.#held.push(action);
    }
  }

  close(): void {
    this.#isClosed = true;
  }

  /** What was held back comes now, late, in order. */
  open(): void {
    this.#isClosed = false;
    for (const action of this.#held.splice(0)) {
      this.#world.at(this.#world.now, () => {
        this.pass(action);
      });
    }
  }

  /** @param silently its connections stay, as where a machine lost its power */
  destroy(silently: boolean): void {
    this.#isGone = true;
    this.#held = [];
    for (const subscription of silently ? [] : this.#subscriptions) {
      subscription.close();
    }
  }

  opened(subscription: Subscription): Subscription {
    this.#subscriptions.push(subscription);
    const ended = this.listening();
    return {
      close: () => {
        ended();
        subscription.close();
      },
    };
  }

  /** @returns to be called when it ends */
  listening(): () => void {
    let isOver = false;
    this.listeners += 1;
    return () => {
      this.listeners -= isOver ? 0 : 1;
      isOver = true;
    };
  }
}

/** The connection of a process: what it hears passes its gate. */
export function gated(connection: Connection, gate: Gate): Connection {
  const behind = <T>(answer: Promise<T>): Promise<T> => {
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
    run: (script, keys, args) => behind(connection.run(script, keys, args)),
    command: (name, args) => behind(connection.command(name, args)),
    subscribe: (channel, kind, listener) =>
      gate.opened(
        connection.subscribe(channel, kind, {
          up: () => {
            gate.pass(() => {
              listener.up();
            });
          },
          down: () => {
            gate.pass(() => {
              listener.down();
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
      const ended = gate.listening();
      return () => {
        ended();
        stop();
      };
    },
  };
}
