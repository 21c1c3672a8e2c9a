import { once } from "node:events";
import type { ServerResponse } from "node:http";

import { ClientDisconnected } from "./connection.ts";

/** A client that has not read for this time is disconnected. */
const maxBlockMs = 30_000;
const heartbeatMs = 15_000;

/** Server-sent events to one client, at the client's reading speed. */
export class EventStream {
  readonly #outgoing: ServerResponse;
  readonly #heartbeat: NodeJS.Timeout;

  constructor(outgoing: ServerResponse) {
    this.#outgoing = outgoing;
    outgoing.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-store, no-transform", // a compressing application would delay the events
      "x-accel-buffering": "no",
    });
    outgoing.flushHeaders();
    this.#heartbeat = setInterval(() => {
      if (outgoing.writableLength === 0) {
        outgoing.write(": \n\n");
      }
    }, heartbeatMs).unref();
    outgoing.once("close", () => {
      clearInterval(this.#heartbeat);
    });
  }

  /** Resolves when the buffer has room. Rejects if the client has disconnected or does not read. */
  async send(event: string, data: object): Promise<void> {
    const outgoing = this.#outgoing;
    if (outgoing.destroyed) {
      throw new ClientDisconnected();
    }
    if (outgoing.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)) {
      return;
    }
    const timeout = AbortSignal.timeout(maxBlockMs);
    const closed = new AbortController();
    const stop = (): void => {
      closed.abort();
    };
    outgoing.once("close", stop);
    try {
      await once(outgoing, "drain", { signal: AbortSignal.any([timeout, closed.signal]) });
    } catch {
      outgoing.destroy();
      throw new ClientDisconnected();
    } finally {
      outgoing.off("close", stop);
    }
  }

  end(): void {
    clearInterval(this.#heartbeat);
    this.#outgoing.end();
  }
}
