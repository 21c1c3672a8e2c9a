import { instantNow, type Clock, type Instant } from "../../runtime/clock.ts";
import { messageOf } from "../../runtime/error-message.ts";
import { utf8Decoder } from "../../runtime/text.ts";
import { closedError, EngineError, isLockError } from "../../errors.ts";
import { StaleConnection, type Transport, type TransportReply } from "./transport.ts";

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

export interface ClientSettings {
  readonly url: URL;
  readonly token: string | undefined;
  readonly transport: Transport;
  readonly clock: Clock;
}

/** Errors of a connection that was never opened, so the service has not received the request. */
const notSent = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

/** Errors of an untrusted certificate. A retry does not help. */
const untrustedCertificate = /CERT|SIGNATURE|ERR_TLS|ERR_SSL/;

/** A larger body cannot come from the service. */
const maxBodyBytes = 64 * 1024 * 1024;

/** An HTTP client for one service. */
export class Client {
  readonly clock: Clock;
  readonly node: string;
  readonly #url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #transport: Transport;
  #openStreams = 0;
  #isClosed = false;

  constructor({ url, token, transport, clock }: ClientSettings) {
    this.clock = clock;
    this.node = url.host;
    this.#url = url;
    this.#transport = transport;
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  }

  /** Whether the runtime limits connections, so that not every waiter can have an event stream. */
  get hasFewConnections(): boolean {
    return this.#transport.maxStreams < Infinity;
  }

  /** Reserves a connection for an event stream. Returns the end of the reservation, or undefined if too many streams are open. */
  reserveStream(): (() => void) | undefined {
    if (this.#openStreams >= this.#transport.maxStreams) {
      return undefined;
    }
    this.#openStreams += 1;
    return () => (this.#openStreams -= 1);
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
      const reply = await this.send(spec, timedOut.signal, () => (isRepeat = true));
      return { status: reply.status, body: await bodyOf(reply), sent, isRepeat };
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
    { method, path, body, accept }: HttpRequestSpec,
    signal?: AbortSignal,
    onRepeat: () => void = () => undefined,
  ): Promise<TransportReply> {
    const request = {
      method,
      url: new URL(path.slice(1), this.#url),
      headers: {
        ...this.#headers,
        accept: accept ?? "application/json",
        ...(body && { "content-type": "application/json" }),
      },
      body: body && JSON.stringify(body),
    };
    for (;;) {
      if (this.#isClosed) {
        throw closedError();
      }
      try {
        return await this.#transport.send(request, signal);
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
    const { code = "" } = error as { code?: string };
    const isUntrusted = untrustedCertificate.test(code);
    return new EngineError(`The lock service at ${this.node}: ${messageOf(error)}`, {
      outcome: isUntrusted || notSent.has(code) ? "none" : "unknown",
      retryable: !isUntrusted,
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#transport.close();
  }

  /** The outcome is unknown, because the service may have executed the request. */
  noReplyError(afterMs: number): EngineError {
    const message = `The lock service at ${this.node} did not answer within ${Math.round(afterMs)} ms`;
    return new EngineError(message, { outcome: "unknown", retryable: true });
  }
}

/** The parsed body of a reply; undefined if the body is not JSON, and so comes from a proxy rather than the service. */
export async function bodyOf({ body }: TransportReply): Promise<unknown> {
  const decoder = utf8Decoder();
  let text = "";
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxBodyBytes) {
      throw new Error(`the reply is longer than ${maxBodyBytes} bytes`);
    }
    text += decoder.decode(chunk, { stream: true });
  }
  try {
    return JSON.parse(text + decoder.decode());
  } catch {
    return undefined;
  }
}
