import { backoffMs, type Random } from "../../../runtime/random.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { pause, withTimeout } from "../../../runtime/timeout.ts";
import { Connection, newSession, type SessionId } from "./connection.ts";
import { codes, connectionError, hasCode, ZooKeeperError } from "./errors.ts";
import type { HostAndPort } from "./host.ts";
import { closeSession, sync, type Operation } from "./operations.ts";

export interface SessionSettings {
  readonly hosts: readonly HostAndPort[];
  readonly sessionTimeoutMs: number;
  readonly commandTimeoutMs: number;
  readonly credentials: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
}

export interface SessionListener {
  /** A watched node was created, changed or deleted. */
  changed(path: string): void;
  /** A connection is open. The watches of an earlier connection have ended. @param isNew the ephemeral nodes have been removed, too */
  connected(isNew: boolean): void;
  disconnected(): void;
}

interface Waiting {
  readonly resolve: (connection: Connection) => void;
  readonly reject: (error: ZooKeeperError) => void;
}

/** A session of ZooKeeper. It connects with one server after the other, until `close`. An expired session is replaced by a new one. */
export class Session {
  listener: SessionListener | undefined;
  readonly #settings: SessionSettings;
  readonly #closing = new AbortController();
  readonly #waiting = new Set<Waiting>();
  #id: SessionId = newSession;
  #connection: Connection | undefined;
  #failure: ZooKeeperError | undefined;
  #next: number;
  #loop: Promise<void> | undefined;

  constructor(settings: SessionSettings) {
    this.#settings = settings;
    this.#next = Math.floor(settings.random.nextFloat() * settings.hosts.length);
  }

  /** The connected server; undefined: none. */
  get host(): string | undefined {
    return this.#connection?.host;
  }

  /** Why the last attempt to connect failed; undefined while a connection is open. */
  get failure(): ZooKeeperError | undefined {
    return this.#connection ? undefined : this.#failure;
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** Sends an operation. Without a connection the operation waits until each server has failed once. */
  async request<T>(operation: Operation<T>): Promise<T> {
    return (this.#connection ?? (await this.#connected())).request(operation);
  }

  /** Sends a read that sees everything that was committed before. */
  async freshly<T>(operation: Operation<T>): Promise<T> {
    const connection = this.#connection ?? (await this.#connected());
    const [, reply] = await Promise.all([connection.request(sync()), connection.request(operation)]);
    return reply;
  }

  /** Ends the session at the server, which removes its ephemeral nodes, and the connection. */
  async close(): Promise<void> {
    this.#closing.abort();
    const { clock, commandTimeoutMs } = this.#settings;
    const connection = this.#connection;
    if (connection) {
      const ended = connection.request(closeSession()).catch(() => undefined);
      await withTimeout(clock, commandTimeoutMs, ended);
    }
    connection?.destroy(closedReason());
    await this.#loop;
  }

  #connected(): Promise<Connection> {
    if (this.#closing.signal.aborted) {
      return Promise.reject(closedReason());
    }
    this.start();
    return new Promise((resolve, reject) => this.#waiting.add({ resolve, reject }));
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    const { clock, random, hosts } = this.#settings;
    for (let failures = 0; !signal.aborted;) {
      try {
        const connection = await this.#connect();
        failures = 0;
        await this.#untilEnd(connection);
      } catch (error) {
        if (hasCode(error, codes.sessionExpired) && this.#id.id !== 0n) {
          this.#id = newSession;
          continue; // the same server starts a new session
        }
        failures += 1;
        this.#failure = error as ZooKeeperError;
        this.#next += 1;
        if (failures % hosts.length === 0 || !(error as ZooKeeperError).retryable) {
          this.#settleWaiting(({ reject }) => reject(notSent(error as ZooKeeperError)));
          await pause(clock, backoffMs(random, Math.floor(failures / hosts.length) - 1), false, signal);
        }
      }
    }
    this.#settleWaiting(({ reject }) => reject(closedReason()));
  }

  async #connect(): Promise<Connection> {
    const { clock, commandTimeoutMs, hosts, ...rest } = this.#settings;
    const host = hosts[this.#next % hosts.length] as HostAndPort;
    const isNew = this.#id.id === 0n;
    const connection = await Connection.open({
      ...rest,
      ...host,
      clock,
      session: this.#id,
      connectTimeoutMs: hosts.length > 1 ? commandTimeoutMs / 2 : commandTimeoutMs,
      replyTimeoutMs: 2 * commandTimeoutMs,
      onEvent: (path) => this.listener?.changed(path),
    });
    if (this.#closing.signal.aborted) {
      connection.destroy(closedReason());
      throw closedReason();
    }
    this.#id = connection.session;
    this.#connection = connection;
    // Later reads see all that earlier connections wrote. A request of the old connection cannot take effect after this.
    connection.request(sync()).catch(() => undefined);
    this.#settleWaiting(({ resolve }) => resolve(connection));
    this.listener?.connected(isNew);
    return connection;
  }

  async #untilEnd(connection: Connection): Promise<void> {
    await connection.closed;
    this.#connection = undefined;
    this.#next += 1;
    if (!this.#closing.signal.aborted) {
      this.listener?.disconnected();
    }
  }

  #settleWaiting(settle: (waiting: Waiting) => void): void {
    for (const waiting of this.#waiting) {
      this.#waiting.delete(waiting);
      settle(waiting);
    }
  }
}

/** The error of an operation that waited for a connection. */
function notSent(cause: ZooKeeperError): ZooKeeperError {
  const { code, retryable } = cause;
  const message = cause.message.replace("ZooKeeper: ", "");
  return new ZooKeeperError(message, { code, outcome: "none", retryable, cause });
}

function closedReason(): ZooKeeperError {
  return connectionError("the driver is closed", "none");
}
