import type { Connection } from "holdfast/redis";

import { commandText } from "./diagnostics-log.ts";

/** A connection that holds requests, and lets the server execute them later without a reply to the client. */
export class DelayedConnection implements Connection {
  readonly keyPrefix: string;
  readonly name: string;
  readonly #inner: Connection;
  readonly #heldCalls: (() => Promise<unknown>)[] = [];
  readonly #sentListeners: string[] = [];
  #heldOperations: readonly string[] = [];
  #atMost = 0;
  #lostOperations: readonly string[] = [];

  constructor(inner: Connection) {
    this.#inner = inner;
    this.keyPrefix = inner.keyPrefix;
    this.name = inner.name;
  }

  /** From now on these operations do not reach the server. */
  holdBack(operations: readonly string[], atMost: number = Infinity): void {
    this.#heldOperations = operations;
    this.#atMost = atMost;
  }

  /** From now on these operations are executed, and their replies are lost. */
  loseReplies(operations: readonly string[]): void {
    this.#lostOperations = operations;
  }

  /** The held requests reach the server now. Later requests are not held. */
  executeHeld(): void {
    this.#atMost = 0;
    for (const send of this.#heldCalls.splice(0)) {
      void send();
    }
  }

  /** How often an operation was requested. */
  whenSent(operation: string): number {
    return this.#sentListeners.filter((name) => name === operation).length;
  }

  run(...call: Parameters<Connection["run"]>): Promise<unknown> {
    const [name = ""] = commandText(call[2]);
    this.#sentListeners.push(name);
    const send = (): Promise<unknown> => this.#inner.run(...call);
    if (this.#heldOperations.includes(name) && this.#heldCalls.length < this.#atMost) {
      this.#heldCalls.push(send);
    } else if (this.#lostOperations.includes(name)) {
      void send();
    } else {
      return send();
    }
    return new Promise(() => undefined);
  }

  command(...call: Parameters<Connection["command"]>): Promise<unknown> {
    return this.#inner.command(...call);
  }

  subscribe(...call: Parameters<Connection["subscribe"]>): ReturnType<Connection["subscribe"]> {
    return this.#inner.subscribe(...call);
  }

  onDown(listener: () => void): () => void {
    return this.#inner.onDown(listener);
  }
}
