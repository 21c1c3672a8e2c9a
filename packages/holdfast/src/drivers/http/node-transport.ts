import type { Agent, ClientRequest, IncomingMessage } from "node:http";
import type * as plain from "node:http";
import type * as secure from "node:https";

import {
  StaleConnection,
  type TlsOptions,
  type Transport,
  type TransportReply,
  type TransportRequest,
} from "./transport.ts";

/** Requests by `node:http` or `node:https`. It reuses connections. An idle connection does not keep the process alive. */
export class NodeTransport implements Transport {
  readonly maxStreams: number = Infinity;
  readonly #request: typeof plain.request;
  readonly #agent: Agent;
  readonly #open = new Set<ClientRequest>();

  constructor({ Agent: Kind, request }: typeof plain | typeof secure, tls: TlsOptions = {}) {
    const given = Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined));
    this.#request = request;
    this.#agent = new Kind({ keepAlive: true, scheduling: "lifo", ...given });
  }

  send({ method, url, headers, body }: TransportRequest, signal?: AbortSignal): Promise<TransportReply> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
      const request = this.#request(url, {
        method,
        agent: this.#agent,
        headers: { ...headers, ...length },
      });
      // With its option `signal`, Node.js destroys the socket with an error, also when the reply has ended and the socket no longer has a
      // listener. That error would end the process.
      const abort = (): void => void request.destroy();
      signal?.addEventListener("abort", abort, { once: true });
      this.#open.add(request);
      request.once("close", () => {
        this.#open.delete(request);
        signal?.removeEventListener("abort", abort);
      });
      request.once("response", (response) => resolve(replyOf(response)));
      request.on("error", (error: NodeJS.ErrnoException) => {
        const isStale = request.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE");
        reject(signal?.aborted ? (signal.reason as Error) : isStale ? new StaleConnection() : error);
      });
      request.end(body);
    });
  }

  close(): void {
    for (const request of this.#open) {
      request.destroy();
    }
    this.#agent.destroy();
  }
}

function replyOf(response: IncomingMessage): TransportReply {
  return {
    status: response.statusCode ?? 0,
    contentType: response.headers["content-type"] ?? "",
    body: response as AsyncIterable<Buffer>,
  };
}
