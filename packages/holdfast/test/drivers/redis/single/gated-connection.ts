import type { Connection } from "holdfast/redis";

import { commandText } from "../../../support/diagnostics-log.ts";

type Listener = Parameters<Connection["subscribe"]>[2];

/** A connection that holds acquires back while other operations pass. The test can interrupt the subscription. */
export class GatedConnection implements Connection {
  isClosed = false;
  listener: Listener | undefined;
  readonly #inner: Connection;
  readonly #held: (() => void)[] = [];

  constructor(inner: Connection) {
    this.#inner = inner;
  }

  get keyPrefix(): string {
    return this.#inner.keyPrefix;
  }

  get name(): string {
    return this.#inner.name;
  }

  open(): void {
    this.isClosed = false;
    for (const go of this.#held.splice(0)) {
      go();
    }
  }

  run(...[script, keys, args]: Parameters<Connection["run"]>): Promise<unknown> {
    if (!this.isClosed || commandText(args)[0] !== "acquire") {
      return this.#inner.run(script, keys, args);
    }
    return new Promise((resolve, reject) => {
      this.#held.push(() => {
        this.#inner.run(script, keys, args).then(resolve, reject);
      });
    });
  }

  command(name: string, args: readonly string[]): Promise<unknown> {
    return this.#inner.command(name, args);
  }

  subscribe(
    ...[channel, kind, listener]: Parameters<Connection["subscribe"]>
  ): ReturnType<Connection["subscribe"]> {
    this.listener = listener;
    return this.#inner.subscribe(channel, kind, listener);
  }

  onDown(listener: () => void): () => void {
    return this.#inner.onDown(listener);
  }
}
