import { connect as connectTcp, type Socket } from "node:net";

import type { Clock, Timer } from "../../../runtime/clock.ts";
import { messageOf } from "../../../runtime/error-message.ts";
import { connectionError, protocolError, replyError, ZooKeeperError } from "./errors.ts";
import { nameOf, type HostAndPort } from "./host.ts";
import { FrameSplitter, JuteReader, JuteWriter } from "./jute.ts";
import type { Operation } from "./operations.ts";

/** A session as the server identifies it. It may move from one connection to the next. */
export interface SessionId {
  readonly id: bigint;
  readonly password: Buffer;
}

export const newSession: SessionId = { id: 0n, password: Buffer.alloc(16) };

export interface ConnectionSettings extends HostAndPort {
  readonly session: SessionId;
  readonly sessionTimeoutMs: number;
  /** How long the server may take to accept the connection, ms. */
  readonly connectTimeoutMs: number;
  /** How long a reply may take, ms. Then the connection is closed. */
  readonly replyTimeoutMs: number;
  /** `user:password` for the scheme `digest`. */
  readonly credentials: string | undefined;
  readonly clock: Clock;
  /** A watched node was created, changed or deleted. */
  readonly onEvent: (path: string) => void;
}

/** Numbers of messages that are not requests of the user. */
const xids = { event: -1, ping: -2, auth: -4 } as const;
const pingCode = 11;
const authCode = 100;
const ticksPerTimeout = 12;

interface Pending {
  readonly xid: number;
  readonly sentAt: number;
  readonly reply: (reader: JuteReader, code: number) => void;
  readonly fail: (error: ZooKeeperError) => void;
}

/** One connection to one server. Replies arrive in the order of the requests. */
export class Connection {
  readonly host: string;
  /** Resolves with the reason when the connection has ended. */
  readonly closed: Promise<ZooKeeperError>;
  session!: SessionId;
  /** The session timeout that the server has granted, ms. */
  sessionTimeoutMs = 0;
  readonly #settings: ConnectionSettings;
  readonly #socket: Socket;
  readonly #splitter = new FrameSplitter();
  #pending: Pending[] = [];
  #accept: ((reader: JuteReader) => void) | undefined;
  #end!: (reason: ZooKeeperError) => void;
  #endReason: ZooKeeperError | undefined;
  #xid = 0;
  #sentAt = 0;
  #receivedAt = 0;
  #timer: Timer;

  private constructor(settings: ConnectionSettings) {
    const { host, port } = settings;
    this.host = nameOf(settings);
    this.#settings = settings;
    this.closed = new Promise((resolve) => (this.#end = resolve));
    this.#socket = connectTcp({ host, port, noDelay: true, keepAlive: true });
    this.#socket.on("data", (chunk) => this.#received(chunk));
    this.#socket.on("error", (error) => this.#failed(error));
    this.#socket.on("close", () =>
      this.#close(connectionError(`${this.host} closed the connection`, "unknown")),
    );
  }

  /**
   * Connects, and continues the session or starts a new one.
   * @throws {ZooKeeperError} with `codes.sessionExpired`, if the server does not know the session
   */
  static async open(settings: ConnectionSettings): Promise<Connection> {
    const connection = new Connection(settings);
    try {
      await connection.#handshake();
      return connection;
    } catch (error) {
      connection.destroy(error as ZooKeeperError);
      throw error;
    }
  }

  /** Sends an operation. Rejects with a `ZooKeeperError` at the latest when the connection has ended. */
  request<T>(operation: Operation<T>): Promise<T> {
    this.#xid = this.#xid === 0x7fffffff ? 1 : this.#xid + 1;
    return this.#send(this.#xid, operation);
  }

  destroy(reason: ZooKeeperError): void {
    this.#close(reason);
  }

  async #handshake(): Promise<void> {
    const { clock, session, sessionTimeoutMs, connectTimeoutMs, credentials } = this.#settings;
    const timer = clock.setTimer(
      () => this.#close(connectionError(`${this.host} did not accept the connection in time`, "none")),
      connectTimeoutMs,
      true,
    );
    const hello = new JuteWriter()
      .int(0)
      .long(0n)
      .int(sessionTimeoutMs)
      .long(session.id)
      .bytes(session.password);
    const accepted = new Promise<void>((resolve, reject) => {
      this.#accept = (reader) => {
        this.#accept = undefined;
        this.#accepted(reader);
        resolve();
      };
      void this.closed.then(reject);
    });
    this.#write(hello.bool(false).frame);
    try {
      await accepted;
      this.#tick();
      if (credentials !== undefined) {
        await this.#authenticate(credentials);
      }
    } finally {
      clock.clearTimer(timer);
    }
  }

  #accepted(reader: JuteReader): void {
    reader.int(); // the version of the protocol
    this.sessionTimeoutMs = reader.int();
    this.session = { id: reader.long(), password: Buffer.from(reader.bytes()) };
    if (this.sessionTimeoutMs <= 0) {
      throw replyError(-112);
    }
  }

  async #authenticate(credentials: string): Promise<void> {
    const body = new JuteWriter().int(0).text("digest").text(credentials).body;
    await this.#send(xids.auth, { code: authCode, body, read: () => undefined });
  }

  #send<T>(xid: number, { code, body, read }: Operation<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#endReason) {
        reject(connectionError(this.#endReason.message, "none", this.#endReason));
        return;
      }
      this.#pending.push({
        xid,
        sentAt: this.#settings.clock.now(),
        fail: reject,
        reply: (reader, errorCode) => {
          if (errorCode !== 0) {
            reject(replyError(errorCode));
            return;
          }
          try {
            resolve(read(reader));
          } catch (error) {
            reject(error as Error);
            if (error instanceof ZooKeeperError && error.code === null) {
              throw error;
            }
          }
        },
      });
      this.#write(new JuteWriter().int(xid).int(code).append(body).frame);
    });
  }

  #write(frame: Buffer): void {
    this.#sentAt = this.#settings.clock.now();
    this.#socket.write(frame);
  }

  #received(chunk: Buffer): void {
    if (this.#endReason) {
      return;
    }
    this.#receivedAt = this.#settings.clock.now();
    try {
      for (const frame of this.#splitter.push(chunk)) {
        this.#frame(new JuteReader(frame));
      }
    } catch (error) {
      this.#close(error instanceof ZooKeeperError ? error : protocolError(String(error)));
    }
  }

  #frame(reader: JuteReader): void {
    if (this.#accept) {
      this.#accept(reader);
      return;
    }
    const xid = reader.int();
    reader.long(); // the last transaction of the server
    const code = reader.int();
    if (xid === xids.ping) {
      return;
    }
    if (xid === xids.event) {
      reader.int(); // the kind of the change
      reader.int(); // the state of the session
      this.#settings.onEvent(reader.text());
      return;
    }
    const [first] = this.#pending;
    if (first?.xid !== xid) {
      throw protocolError(`a reply has the number ${xid}, expected ${first?.xid ?? "none"}`);
    }
    this.#pending.shift();
    first.reply(reader, code);
  }

  /** Sends pings, and closes a connection without replies. The server ends a session without messages. */
  #tick(): void {
    const { clock, replyTimeoutMs } = this.#settings;
    const now = clock.now();
    const oldest = this.#pending[0]?.sentAt ?? now;
    if (now - oldest > replyTimeoutMs || now - this.#receivedAt > (this.sessionTimeoutMs * 2) / 3) {
      this.#close(connectionError(`no reply of ${this.host} in time`, "unknown"));
      return;
    }
    if (now - this.#sentAt >= this.sessionTimeoutMs / 3 - this.sessionTimeoutMs / ticksPerTimeout) {
      this.#write(new JuteWriter().int(xids.ping).int(pingCode).frame);
    }
    const tickMs = Math.min(this.sessionTimeoutMs / ticksPerTimeout, replyTimeoutMs / 2);
    this.#timer = clock.setTimer(() => this.#tick(), tickMs);
  }

  #failed(error: Error): void {
    const outcome = this.#receivedAt === 0 ? "none" : "unknown";
    this.#close(connectionError(messageOf(error), outcome, error));
  }

  #close(reason: ZooKeeperError): void {
    if (this.#endReason) {
      return;
    }
    this.#endReason = reason;
    this.#settings.clock.clearTimer(this.#timer);
    this.#socket.destroy();
    const pending = this.#pending;
    this.#pending = [];
    for (const { fail } of pending) {
      fail(connectionError(reason.message, "unknown", reason));
    }
    this.#end(reason);
  }
}
