import type { Connection } from "holdfast/redis";

import { said } from "./diagnostics-log.ts";

/** A connection that keeps requests back, and lets the server execute them later without telling the client. */
export class LateLine implements Connection {
  readonly keyPrefix: string;
  readonly name: string;
  readonly #inner: Connection;
  readonly #kept: (() => Promise<unknown>)[] = [];
  readonly #said: string[] = [];
  #keptBack: readonly string[] = [];
  #atMost = 0;
  #unanswered: readonly string[] = [];

  constructor(inner: Connection) {
    this.#inner = inner;
    this.keyPrefix = inner.keyPrefix;
    this.name = inner.name;
  }

  /** From now on these operations do not arrive. */
  holdBack(operations: readonly string[], atMost: number = Infinity): void {
    this.#keptBack = operations;
    this.#atMost = atMost;
  }

  /** From now on these are executed, and their answers are lost. */
  loseAnswers(operations: readonly string[]): void {
    this.#unanswered = operations;
  }

  /** What was kept back arrives now. Nothing is kept back any more. */
  executeUnheard(): void {
    this.#atMost = 0;
    for (const send of this.#kept.splice(0)) {
      void send();
    }
  }

  /** How often an operation was asked for. */
  said(operation: string): number {
    return this.#said.filter((name) => name === operation).length;
  }

  run(...call: Parameters<Connection["run"]>): Promise<unknown> {
    const [name = ""] = said(call[2]);
    this.#said.push(name);
    const send = (): Promise<unknown> => this.#inner.run(...call);
    if (this.#keptBack.includes(name) && this.#kept.length < this.#atMost) {
      this.#kept.push(send);
    } else if (this.#unanswered.includes(name)) {
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
