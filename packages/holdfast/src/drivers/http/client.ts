import { Agent, type ClientRequest, type IncomingMessage, type RequestOptions } from "node:http";
import * as plain from "node:http";

import { instantNow, type Clock, type Instant } from "../../runtime/clock.ts";
import { closedError, EngineError, isLockError } from "../../errors.ts";

/** What the service answered, whatever its status. */
export interface HttpResponse {
  readonly status: number;
  readonly body: unknown;
  /** When the question was sent. */
  readonly sent: Instant;
  /** It had been sent before, by a connection that broke: the service may have done it then. */
  readonly isRepeat: boolean;
}

export interface HttpRequestSpec {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly body?: object | undefined;
  readonly accept?: "text/event-stream";
}

/** How a service behind `https:` is known, and who we are to it. */
export interface TlsOptions {
  /** Who may sign the service's certificate (PEM). @defaultValue those that Node trusts */
  readonly ca?: string | undefined;
  /** Our own certificate (PEM), with `key`. */
  readonly cert?: string | undefined;
  /** The key of our own certificate (PEM). */
  readonly key?: string | undefined;
  /** The name that the service's certificate has to have. @defaultValue the host of the URL */
  readonly servername?: string | undefined;
  /** `false`: any certificate will do, and anybody can pretend to be the service. @defaultValue true */
  readonly rejectUnauthorized?: boolean | undefined;
}

export interface ClientSettings {
  readonly url: URL;
  readonly token: string | undefined;
  readonly tls?: TlsOptions | undefined;
  readonly clock: Clock;
}

/** Failures before anything was sent: the service knows nothing of it. */
const notSent = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

/** Its certificate is none that we trust: that does not pass by itself. */
const untrustedCertificate = /CERT|SIGNATURE|ERR_TLS|ERR_SSL/;

/** Larger answers are no answers of the service. */
const maxBodyBytes = 64 * 1024 * 1024;

/** One service, by HTTP. Its connections are kept, and keep no process alive while nothing is asked. */
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
   * Asks, and reads the whole answer.
   * Rejects with an `EngineError` where there was none within `timeoutMs`.
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

  /** Sends, and gives the answer as soon as it begins. A connection that was closed while it was kept is no failure. */
  async send(
    spec: HttpRequestSpec,
    signal?: AbortSignal,
    repeats: () => void = () => undefined,
  ): Promise<IncomingMessage> {
    for (;;) {
      await this.#connect();
      try {
        return await this.#sendOnce(spec, signal);
      } catch (error) {
        if (!(error instanceof StaleConnection)) {
          throw error;
        }
        repeats();
      }
    }
  }

  /** A failure of the way to the service, in the words of the contract. */
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

  /** It said nothing, and may have done what it was asked for. */
  noReplyError(afterMs: number): EngineError {
    const message = `The lock service at ${this.node} did not answer within ${Math.round(afterMs)} ms`;
    return new EngineError(message, { outcome: "unknown", retryable: true });
  }

  /** TLS is loaded only where it is wanted. */
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

/** All of an answer. What is no JSON is no answer of the service: perhaps a proxy's. */
export async function bodyOf(response: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBodyBytes) {
      throw new Error("its answer is too long");
    }
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    return undefined;
  }
}
