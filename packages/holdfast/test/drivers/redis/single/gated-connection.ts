import type { Connection } from "holdfast/redis";

import { commandText } from "../../../support/diagnostics-log.ts";

type Listener = Parameters<Connection["subscribe"]>[2];

/** A connection that holds acquires back while other operations pass. The test can interrupt the subscription. */
export class GatedConnection implements Connection {
  isClosed = false;
  listener: Listener | undefined;
  readonly keyPrefix: string;
  readonly name: string;
  readonly #inner: Connection;
  readonly #held: (() => void)[] = [];

  constructor(inner: Connection) {
    this.#inner = inner;
    this.keyPrefix = inner.keyPrefix;
    this.name = inner.name;
  }

  open(): void {
    this.isClosed = false;
    for (const go of this.#held.splice(0)) {
      go();
    }
  }

  run(...call: Parameters<Connection["run"]>): Promise<unknown> {
    if (!this.isClosed || !["acquire", "refill"].includes(commandText(call[2])[0] ?? "")) {
      return this.#inner.run(...call);
    }
    return new Promise((resolve, reject) => {
      this.#held.push(() => {
        this.#inner.run(...call).then(resolve, reject);
      });
    });
  }

  command(...call: Parameters<Connection["command"]>): Promise<unknown> {
    return this.#inner.command(...call);
  }

  subscribe(...call: Parameters<Connection["subscribe"]>): ReturnType<Connection["subscribe"]> {
    this.listener = call[2];
    return this.#inner.subscribe(...call);
  }

  onDown(listener: () => void): () => void {
    return this.#inner.onDown(listener);
  }
}
