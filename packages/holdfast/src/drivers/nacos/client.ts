import { isLockError, LockError } from "../../errors.ts";
import { instantNow, parseHttpDate } from "../../runtime/clock.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { api2, api3, stateCalls, type Api, type Call, type Place } from "./api.ts";
import { isNotFound, NacosError, networkError, replyError } from "./errors.ts";
import type { ResolvedOptions } from "./options.ts";
import type { ServerTime } from "./server-time.ts";

/** A configuration, as the database has it. */
export interface Stored {
  readonly content: string;
  readonly md5: string;
  /** The wall clock of the server at its reply, ms; undefined: unknown. */
  readonly readAt: number | undefined;
}

/** The state of one server, as the server reports it. */
interface ServerState {
  readonly version: string | undefined;
  /** `standalone` or `cluster`. */
  readonly mode: string | undefined;
  /** The wall clock of the server at its reply, ms; undefined: unknown. */
  readonly time: number | undefined;
}

interface Reply {
  readonly value: unknown;
  readonly time: number | undefined;
}

/** Compare-and-set over HTTP works since this version of Nacos (issues 11115 and 11847). */
const oldest = [2, 3, 2] as const;

/** Sends requests to Nacos. After a failure of the network or of a server the next server is used. */
export class NacosClient {
  readonly servers: readonly string[];
  readonly #options: ResolvedOptions;
  readonly #time: ServerTime;
  /** A frozen server leaves time for another one. */
  readonly #timeoutMs: number;
  readonly #apis = new Map<string, Promise<Api>>();
  #current = 0;
  #token: Promise<string> | undefined;

  constructor(options: ResolvedOptions, time: ServerTime) {
    this.servers = options.servers;
    this.#options = options;
    this.#time = time;
    this.#timeoutMs = Math.ceil(options.commandTimeoutMs / Math.min(2, options.servers.length));
  }

  /** @returns undefined if the configuration does not exist */
  async read(dataId: string): Promise<Stored | undefined> {
    try {
      const { value, time } = await this.#send((api) => api.read(this.#place(dataId)));
      const { content, md5 } = (value ?? {}) as Partial<Stored>;
      return content === undefined || md5 === undefined ? undefined : { content, md5, readAt: time };
    } catch (error) {
      if (isNotFound(error)) {
        return undefined;
      }
      throw error;
    }
  }

  /**
   * Replaces a content that has this MD5, or creates a configuration that does not exist. A success proves the replacement, but not the
   * creation. With the embedded database of Nacos, two creations at once may both report a success.
   */
  async publish(dataId: string, content: string, casMd5: string): Promise<void> {
    const { value } = await this.#send((api) => api.publish(this.#place(dataId), content, casMd5));
    if (value !== true) {
      throw new NacosError("unexpected reply to a publication", { outcome: "unknown", retryable: true });
    }
  }

  /** The IDs on one page of the configurations that fit a pattern. @param page from 1 */
  async list(pattern: string, page: number, size: number): Promise<{ dataIds: string[]; isLast: boolean }> {
    const { value } = await this.#send((api) => api.list(this.#place(pattern), page, size));
    const { pageItems = [], pagesAvailable = 0 } = (value ?? {}) as {
      pageItems?: { dataId: string }[];
      pagesAvailable?: number;
    };
    return { dataIds: pageItems.map(({ dataId }) => dataId), isLast: page >= pagesAvailable };
  }

  /** The state of one server. */
  state(server: string): Promise<ServerState> {
    return this.#limited(server, async (signal) => (await this.#stateOf(server, signal)).state);
  }

  async #send(callOf: (api: Api) => Call): Promise<Reply> {
    for (let tries = 1; ; tries += 1) {
      const current = this.#current;
      const server = this.servers[current] as string;
      try {
        return await this.#limited(server, async (signal) => {
          const api = await this.#apiOf(server, signal);
          return this.#authorized(server, { api, call: callOf(api), signal });
        });
      } catch (error) {
        if (!(error instanceof NacosError) || !error.retryable) {
          throw error;
        }
        this.#apis.delete(server); // another version may be started
        if (this.#current === current) {
          this.#current = (current + 1) % this.servers.length;
        }
        if (error.outcome !== "none" || tries >= this.servers.length) {
          throw error;
        }
      }
    }
  }

  async #limited<T>(server: string, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const abort = new AbortController();
    const pending = run(abort.signal).then((value) => ({ value }));
    try {
      const reply = await withTimeout(this.#options.clock, this.#timeoutMs, pending);
      if (reply) {
        return reply.value;
      }
    } catch (error) {
      throw error instanceof NacosError || isLockError(error) ? error : networkError(error);
    }
    abort.abort();
    const message = `${new URL(server).host} did not reply within ${this.#timeoutMs} ms`;
    throw new NacosError(message, { outcome: "unknown", retryable: true });
  }

  async #apiOf(server: string, signal: AbortSignal): Promise<Api> {
    const api = this.#apis.get(server) ?? this.#stateOf(server, signal).then(supportedApi);
    this.#apis.set(server, api);
    try {
      return await api;
    } catch (error) {
      this.#apis.delete(server);
      throw error;
    }
  }

  async #stateOf(server: string, signal: AbortSignal): Promise<{ api: Api; state: ServerState }> {
    const { nacos2, nacos3 } = stateCalls;
    const [reply, api] = await this.#fetch(server, nacos3, signal).then(
      (found) => [found, api3] as const,
      async (error: unknown) => {
        if (!(error instanceof NacosError) || error.status !== 404) {
          throw error;
        }
        return [await this.#fetch(server, nacos2, signal), api2] as const;
      },
    );
    const { version, startup_mode: mode } = (reply.value ?? {}) as {
      version?: string;
      startup_mode?: string;
    };
    return { api, state: { version, mode, time: reply.time } };
  }

  /** Sends a call with the token of the user. A call that was refused is sent again with a new token. */
  async #authorized(
    server: string,
    { api, call, signal }: { api: Api; call: Call; signal: AbortSignal },
  ): Promise<Reply> {
    if (this.#options.user === undefined) {
      return this.#fetch(server, call, signal);
    }
    const token = await (this.#token ??= this.#login(server, api, signal));
    try {
      return await this.#fetch(server, call, signal, token);
    } catch (error) {
      if (!(error instanceof NacosError) || (error.status !== 401 && error.status !== 403)) {
        throw error;
      }
      const renewed = await (this.#token = this.#login(server, api, signal));
      return this.#fetch(server, call, signal, renewed);
    }
  }

  async #login(server: string, api: Api, signal: AbortSignal): Promise<string> {
    const { user = "", password } = this.#options;
    try {
      const { value } = await this.#fetch(server, api.login(user, password), signal);
      const { accessToken } = (value ?? {}) as { accessToken?: string };
      if (accessToken === undefined) {
        throw new NacosError("the login returned no token", { outcome: "none", retryable: false });
      }
      return accessToken;
    } catch (error) {
      this.#token = undefined;
      throw error;
    }
  }

  async #fetch(server: string, call: Call, signal: AbortSignal, token?: string): Promise<Reply> {
    const { method, path, parameters, casMd5 } = call;
    const form = new URLSearchParams(parameters);
    const query = method === "GET" && form.size > 0 ? `?${form.toString()}` : "";
    const sent = instantNow(this.#options.clock);
    const response = await this.#options.fetch(`${server}${this.#options.contextPath}${path}${query}`, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(casMd5 === undefined ? {} : { casMd5 }),
      },
      ...(method === "POST" ? { body: form } : {}),
      redirect: "error",
      signal,
    });
    const time = parseHttpDate(response.headers.get("date"));
    const text = await response.text();
    if (response.ok && time !== undefined) {
      this.#time.learn(time, sent);
    }
    return { value: valueOf(response, text), time };
  }

  #place(dataId: string): Place {
    const { namespace, group } = this.#options;
    return { namespace, group, dataId };
  }
}

/** The value in a reply, which most paths nest beside an error code. @throws {NacosError} */
function valueOf({ ok, status }: Response, text: string): unknown {
  if (!ok) {
    throw replyError(status, text);
  }
  const reply = text === "" ? null : (JSON.parse(text) as unknown);
  if (typeof reply !== "object" || reply === null || !("code" in reply) || !("data" in reply)) {
    return reply;
  }
  if (reply.code !== 0) {
    throw replyError(status, text);
  }
  return reply.data;
}

/** @throws {LockError} for a version without a safe compare-and-set */
function supportedApi({ api, state: { version = "unknown" } }: { api: Api; state: ServerState }): Api {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map((part) => Number.parseInt(part, 10) || 0);
  const order = (parts: readonly number[]): number => parts.reduce((sum, part) => sum * 1_000 + part, 0);
  if (api === api2 && order([major, minor, patch]) < order(oldest)) {
    const message = `Nacos ${version} has no safe compare-and-set over HTTP; upgrade to ${oldest.join(".")} or newer`;
    throw new LockError(message, { code: "unsupported" });
  }
  return api;
}
