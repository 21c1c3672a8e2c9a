import { parseHttpDate } from "../../runtime/clock.ts";
import { utf8Decoder } from "../../runtime/text.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { EtcdError, needsNewToken, networkError, replyError } from "./errors.ts";
import type { ResolvedOptions } from "./options.ts";

type GatewayOptions = Pick<
  ResolvedOptions,
  "endpoints" | "user" | "password" | "fetch" | "commandTimeoutMs" | "clock"
>;

/** Sends requests to the JSON gateway of etcd. After a failure of the network the next endpoint is used. */
export class Gateway {
  readonly endpoints: readonly string[];
  readonly #options: GatewayOptions;
  /** A frozen member leaves time for another one. */
  readonly #timeoutMs: number;
  #current = 0;
  /** Ends the streams of the current endpoint, because a frozen member ends no stream. */
  #moved = new AbortController();
  #token: Promise<string> | undefined;
  #repliedAt: number | undefined;

  constructor(options: GatewayOptions) {
    this.endpoints = options.endpoints;
    this.#options = options;
    this.#timeoutMs = Math.ceil(options.commandTimeoutMs / Math.min(2, options.endpoints.length));
  }

  /** The reply to one request. @throws {EtcdError} */
  async call<T>(path: string, body: object): Promise<T> {
    const text = await this.#send((endpoint) =>
      this.#limited(endpoint, async (signal) => {
        const response = await this.#post(endpoint, path, body, signal);
        return response.text();
      }),
    );
    return JSON.parse(text) as T;
  }

  /** The time of the last reply by the clock of its endpoint, ms since 1970, with whole seconds. Without a reply: the own clock. */
  serverTime(): number {
    return this.#repliedAt ?? this.#options.clock.wall();
  }

  /** The reply of one endpoint, for its state. @throws {EtcdError} */
  async ask<T>(endpoint: string, path: string): Promise<T> {
    try {
      return await this.#limited(endpoint, async (signal) => {
        const response = await this.#post(endpoint, path, {}, signal);
        return (await response.json()) as T;
      });
    } catch (error) {
      throw error instanceof EtcdError ? error : networkError(error);
    }
  }

  /** The lines of a stream of replies. The stream fails when a call to the same endpoint does. */
  async *stream<T>(path: string, body: object, signal: AbortSignal): AsyncGenerator<T> {
    const response = await this.#send((endpoint) =>
      this.#post(endpoint, path, body, AbortSignal.any([signal, this.#moved.signal])),
    );
    const decoder = utf8Decoder();
    let rest = "";
    try {
      for await (const chunk of response.body ?? []) {
        const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) {
          yield JSON.parse(line) as T;
        }
      }
    } catch (error) {
      throw networkError(error);
    }
  }

  /** Sends a request that was not sent to the next endpoint, and one that was refused for its old token again. */
  async #send<T>(request: (endpoint: string) => Promise<T>): Promise<T> {
    let hasNewToken = false;
    for (let unreachable = 0; ;) {
      const current = this.#current;
      try {
        return await request(this.endpoints[current] as string);
      } catch (cause) {
        const error = cause instanceof EtcdError ? cause : networkError(cause);
        if (needsNewToken(error) && this.#options.user !== undefined && !hasNewToken) {
          this.#token = undefined;
          hasNewToken = true;
          continue;
        }
        if (error.retryable && this.#current === current) {
          this.#move();
        }
        unreachable += 1;
        if (error.code !== null || error.outcome !== "none" || unreachable >= this.endpoints.length) {
          throw error;
        }
      }
    }
  }

  #move(): void {
    this.#current = (this.#current + 1) % this.endpoints.length;
    this.#moved.abort();
    this.#moved = new AbortController();
  }

  async #limited<T>(endpoint: string, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const abort = new AbortController();
    const pending = run(abort.signal).then((value) => ({ value }));
    const reply = await withTimeout(this.#options.clock, this.#timeoutMs, pending);
    if (reply === undefined) {
      abort.abort();
      const message = `${new URL(endpoint).host} did not reply within ${this.#timeoutMs} ms`;
      throw new EtcdError(message, { code: null, outcome: "unknown", retryable: true });
    }
    return reply.value;
  }

  async #post(endpoint: string, path: string, body: object, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (this.#options.user !== undefined) {
      headers["authorization"] = await this.#authenticate(endpoint);
    }
    return this.#fetch(endpoint, path, { headers, body: JSON.stringify(body), signal });
  }

  async #fetch(endpoint: string, path: string, init: RequestInit): Promise<Response> {
    const response = await this.#options.fetch(`${endpoint}/v3/${path}`, { ...init, method: "POST" });
    this.#repliedAt = parseHttpDate(response.headers.get("date"));
    if (!response.ok) {
      throw replyError(response.status, await response.text());
    }
    return response;
  }

  async #authenticate(endpoint: string): Promise<string> {
    const token = (this.#token ??= this.#newToken(endpoint));
    try {
      return await token;
    } catch (error) {
      if (this.#token === token) {
        this.#token = undefined;
      }
      throw error;
    }
  }

  async #newToken(endpoint: string): Promise<string> {
    const { user: name, password } = this.#options;
    const body = JSON.stringify({ name, password });
    return this.#limited(endpoint, async (signal) => {
      const response = await this.#fetch(endpoint, "auth/authenticate", { body, signal });
      return ((await response.json()) as { token: string }).token;
    });
  }
}
