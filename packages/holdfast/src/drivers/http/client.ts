import { Agent, type ClientRequest, type IncomingMessage, type RequestOptions } from "node:http";
import * as plain from "node:http";

import { instantNow, type Clock, type Instant } from "../../runtime/clock.ts";
import { closedError, EngineError, isLockError } from "../../errors.ts";

/** A reply of the service, with any status. */
export interface HttpResponse {
  readonly status: number;
  readonly body: unknown;
  /** When the request was sent. */
  readonly sent: Instant;
  /** Whether the request was sent before, on a connection that broke. The service may have executed the first one. */
  readonly isRepeat: boolean;
}

export interface HttpRequestSpec {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly body?: object | undefined;
  readonly accept?: "text/event-stream";
}

/** TLS of an `https:` service: how to verify its certificate, and the client's own certificate. */
export interface TlsOptions {
  /** The authorities that may sign the service's certificate (PEM). @defaultValue the authorities that Node trusts */
  readonly ca?: string | undefined;
  /** The client's certificate (PEM), with `key`. */
  readonly cert?: string | undefined;
  /** The private key of the client's certificate (PEM). */
  readonly key?: string | undefined;
  /** The name that the service's certificate must contain. @defaultValue the host of the URL */
  readonly servername?: string | undefined;
  /** `false` accepts any certificate, so any server can pretend to be the service. @defaultValue true */
  readonly rejectUnauthorized?: boolean | undefined;
}

export interface ClientSettings {
  readonly url: URL;
  readonly token: string | undefined;
  readonly tls?: TlsOptions | undefined;
  readonly clock: Clock;
}

/** Errors of a connection that was never opened, so the service has not received the request. */
const notSent = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

/** Errors of an untrusted certificate. A retry does not help. */
const untrustedCertificate = /CERT|SIGNATURE|ERR_TLS|ERR_SSL/;

/** A larger body cannot come from the service. */
const maxBodyBytes = 64 * 1024 * 1024;

/** An HTTP client for one service. It reuses connections. An idle connection does not keep the process alive. */
export class Client {
  readonly clock: Clock;
  readonly node: string;
  readonly #url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #tls: object;
  readonly #open = new Set<ClientRequest>();
  #agent: Agent | undefined;
  #request: typeof plain.request | undefined;
  #isClosed = false;

  constructor({ url, token, tls = {}, clock }: ClientSettings) {
    this.clock = clock;
    this.#tls = Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined));
    this.node = url.host;
    this.#url = url;
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  }

  /**
   * Sends a request and reads the whole reply.
   * Rejects with an `EngineError` if the service does not reply within `timeoutMs`.
   */
  async request(spec: HttpRequestSpec, timeoutMs: number): Promise<HttpResponse> {
    const sent = instantNow(this.clock);
    let timer: unknown;
    const timedOut = new AbortController();
    try {
      timer = this.clock.setTimer(() => timedOut.abort(), timeoutMs);
      let isRepeat = false;
      const response = await this.send(spec, timedOut.signal, () => (isRepeat = true));
      return { status: response.statusCode ?? 0, body: await bodyOf(response), sent, isRepeat };
    } catch (error) {
      throw timedOut.signal.aborted ? this.noReplyError(timeoutMs) : this.failure(error);
    } finally {
      this.clock.clearTimer(timer);
    }
  }

  /**
   * Sends a request and resolves when the head of the reply has arrived. If the service had closed a reused connection, the client
   * sends the request again.
   * @param onRepeat called before each repeat
   */
  async send(
    spec: HttpRequestSpec,
    signal?: AbortSignal,
    onRepeat: () => void = () => undefined,
  ): Promise<IncomingMessage> {
    for (;;) {
      await this.#connect();
      try {
        return await this.#sendOnce(spec, signal);
      } catch (error) {
        if (!(error instanceof StaleConnection)) {
          throw error;
        }
        onRepeat();
      }
    }
  }

  /** The error of the driver contract for a failed connection. */
  failure(error: unknown): Error {
    if (this.#isClosed) {
      return closedError();
    }
    if (isLockError(error)) {
      return error;
    }
    const { code = "", message } = error as { code?: string; message?: string };
    const isUntrusted = untrustedCertificate.test(code);
    return new EngineError(`The lock service at ${this.node}: ${message ?? String(error)}`, {
      outcome: isUntrusted || notSent.has(code) ? "none" : "unknown",
      retryable: !isUntrusted,
    });
  }

  close(): void {
    this.#isClosed = true;
    for (const request of this.#open) {
      request.destroy();
    }
    this.#agent?.destroy();
  }

  /** The outcome is unknown, because the service may have executed the request. */
  noReplyError(afterMs: number): EngineError {
    const message = `The lock service at ${this.node} did not answer within ${Math.round(afterMs)} ms`;
    return new EngineError(message, { outcome: "unknown", retryable: true });
  }

  /** Loads TLS only for `https:`, because loading costs time. */
  async #connect(): Promise<void> {
    if (this.#isClosed) {
      throw closedError();
    }
    if (!this.#agent) {
      const { Agent: Kind, request } = this.#url.protocol === "https:" ? await import("node:https") : plain;
      this.#agent ??= new Kind({ keepAlive: true, scheduling: "lifo", ...this.#tls });
      this.#request = request;
    }
  }

  #sendOnce({ method, path, body, accept }: HttpRequestSpec, signal?: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const text = body === undefined ? undefined : JSON.stringify(body);
      const options: RequestOptions = {
        method,
        agent: this.#agent as Agent,
        headers: {
          ...this.#headers,
          accept: accept ?? "application/json",
          ...(text !== undefined && {
            "content-type": "application/json",
            "content-length": Buffer.byteLength(text),
          }),
        },
        ...(signal && { signal }),
      };
      const request = (this.#request ?? plain.request)(new URL(path.slice(1), this.#url), options);
      this.#open.add(request);
      request.once("close", () => this.#open.delete(request));
      request.once("response", resolve);
      request.on("error", (error: NodeJS.ErrnoException) => {
        const isStale = request.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE");
        reject(isStale && signal?.aborted !== true ? new StaleConnection() : error);
      });
      request.end(text);
    });
  }
}

class StaleConnection extends Error {}

/** The parsed body of a reply; undefined if the body is not JSON, and so comes from a proxy rather than the service. */
export async function bodyOf(response: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBodyBytes) {
      throw new Error(`the reply is longer than ${maxBodyBytes} bytes`);
    }
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    return undefined;
  }
}
