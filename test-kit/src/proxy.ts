import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** Which way bytes go: `requests` to the server, `replies` (and messages) from it. */
export type Direction = "requests" | "replies";
/** What can be kept back: a direction, or of the replies only what goes to connections that subscribed, or to those that did not. */
export type Flow = Direction | "messages" | "answers";

/** A TCP proxy before a server, whose connections can be disturbed. Everything holds for all connections, present and future. */
export interface Proxy {
  readonly port: number;
  /** How many connections are open. */
  readonly size: number;
  /** Keeps what goes this way back, in order, until `resume`. */
  pause(flow: Flow): void;
  resume(flow: Flow): void;
  /** A connection that sends something that matches is kept back from that on, until `letGo`. Undefined: none is any more. */
  holdBack(pattern: RegExp | undefined): void;
  /** How many connections were refused. */
  readonly refusals: number;
  /** How many connections are kept back. */
  readonly heldBack: number;
  /** Sends on what was kept back. */
  releaseHeld(): void;
  /** The server's next bytes that follow a request that matches are thrown away, then that connection is cut. Resolves when it happened. */
  loseNextReply(pattern?: RegExp): Promise<void>;
  /** No reply is to be lost any more. */
  cancelReplyLoss(): void;
  /** Resolves when the server has sent something that matches, whatever becomes of it. */
  serverSent(pattern: RegExp): Promise<void>;
  /** Throws away the messages that match, as long as there is a pattern. (Not answers: each that follows would be taken for the one before it.) */
  dropMatching(pattern: RegExp | undefined): void;
  /** A connection by which the server sends something that matches passes nothing of what it sends any more, from that on. */
  muteConnections(pattern: RegExp): void;
  /** Lets that many more bytes of replies through, then throws all away, until `keepReplies`. */
  dropReplies(afterBytes?: number): void;
  stopDroppingReplies(): void;
  /** Both directions are late by so much, in order: what comes after a change overtakes nothing. */
  delay(ms: number): void;
  /** Ends every open connection, or those that never subscribed. */
  cut(selection?: "commands"): void;
  /** Connections that subscribed are half-open from now on: nothing passes, not even that one side ended it. */
  halfOpenSubscriptions(): void;
  /** New connections are ended at once. */
  refuse(refuses: boolean): void;
  stop(): Promise<void>;
}

export async function startProxy(targetPort: number): Promise<Proxy> {
  const proxy = new TcpProxy(targetPort);
  await proxy.listen();
  return proxy;
}

class TcpProxy implements Proxy {
  readonly #targetPort: number;
  readonly #links = new Set<ProxiedConnection>();
  readonly #server = createServer({ allowHalfOpen: true }, (socket) => {
    this.#accept(socket);
  });
  readonly paused = new Set<Flow>();
  pattern: RegExp | undefined;
  dropPattern: RegExp | undefined;
  mutePattern: RegExp | undefined;
  delayMs = 0;
  replyBytesLeft = Infinity;
  replyLoss: { readonly pattern: RegExp; readonly done: () => void } | undefined;
  readonly expected = new Map<RegExp, () => void>();
  #refuses = false;
  refusals = 0;

  constructor(targetPort: number) {
    this.#targetPort = targetPort;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get size(): number {
    return this.#links.size;
  }

  get heldBack(): number {
    return Array.from(this.#links).filter((link) => link.isHeldBack).length;
  }

  async listen(): Promise<void> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
  }

  pause(flow: Flow): void {
    this.paused.add(flow);
  }

  resume(flow: Flow): void {
    this.paused.delete(flow);
    this.#flush();
  }

  holdBack(pattern: RegExp | undefined): void {
    this.pattern = pattern;
  }

  releaseHeld(): void {
    this.pattern = undefined;
    for (const link of this.#links) {
      link.isHeldBack = false;
    }
    this.#flush();
  }

  loseNextReply(pattern: RegExp = /./): Promise<void> {
    return new Promise((done) => {
      this.replyLoss = { pattern, done };
    });
  }

  cancelReplyLoss(): void {
    this.replyLoss = undefined;
  }

  serverSent(pattern: RegExp): Promise<void> {
    return new Promise((resolve) => {
      this.expected.set(pattern, resolve);
    });
  }

  dropMatching(pattern: RegExp | undefined): void {
    this.dropPattern = pattern;
  }

  muteConnections(pattern: RegExp): void {
    this.mutePattern = pattern;
  }

  dropReplies(afterBytes = 0): void {
    this.replyBytesLeft = afterBytes;
  }

  stopDroppingReplies(): void {
    this.replyBytesLeft = Infinity;
  }

  delay(ms: number): void {
    this.delayMs = ms;
  }

  cut(selection?: "commands"): void {
    for (const link of Array.from(this.#links)) {
      if (selection === undefined || !link.isSubscribed) {
        link.cut();
      }
    }
  }

  halfOpenSubscriptions(): void {
    for (const link of this.#links) {
      link.isHalfOpen ||= link.isSubscribed;
    }
  }

  refuse(refuses: boolean): void {
    this.#refuses = refuses;
  }

  async stop(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }

  #accept(socket: Socket): void {
    if (this.#refuses) {
      this.refusals += 1;
      socket.destroy();
      return;
    }
    const link = new ProxiedConnection(this, socket, connect(this.#targetPort, "127.0.0.1"), () => {
      this.#links.delete(link);
    });
    this.#links.add(link);
  }

  #flush(): void {
    for (const link of this.#links) {
      link.flush();
    }
  }
}

/** One connection through the proxy. */
class ProxiedConnection {
  isHeldBack = false;
  isSubscribed = false;
  isHalfOpen = false;
  #isMuted = false;
  #dropsNextReply = false;
  readonly #proxy: TcpProxy;
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #channels: Record<Direction, DelayedChannel>;

  constructor(proxy: TcpProxy, client: Socket, server: Socket, ended: () => void) {
    this.#proxy = proxy;
    this.#client = client;
    this.#server = server;
    this.#channels = {
      requests: new DelayedChannel(server, () => this.#isPaused("requests")),
      replies: new DelayedChannel(client, () => this.#isPaused("replies")),
    };
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      socket.on("error", () => undefined);
    }
    client.on("end", () => {
      if (!this.isHalfOpen) {
        client.end();
      }
    });
    server.on("close", () => {
      if (!this.isHalfOpen) {
        this.cut();
      }
    });
    client.on("close", () => {
      this.cut();
      ended();
    });
    client.on("data", (bytes: Buffer) => {
      this.#requested(bytes);
    });
    server.on("data", (bytes: Buffer) => {
      this.#replied(bytes);
    });
  }

  cut(): void {
    this.#client.destroy();
    this.#server.destroy();
  }

  flush(): void {
    this.#channels.requests.flush();
    this.#channels.replies.flush();
  }

  #requested(bytes: Buffer): void {
    const text = bytes.toString("latin1");
    this.isSubscribed ||= /subscribe\r\n/i.test(text);
    this.isHeldBack ||= this.#proxy.pattern?.test(text) === true;
    if (this.#proxy.replyLoss?.pattern.test(text) === true) {
      this.#dropsNextReply = true;
    }
    this.#forward("requests", bytes);
  }

  #replied(bytes: Buffer): void {
    if (this.#dropsNextReply) {
      this.#dropsNextReply = false;
      this.#proxy.replyLoss?.done();
      this.#proxy.replyLoss = undefined;
      this.cut();
      return;
    }
    const text = bytes.toString("latin1");
    for (const [pattern, resolve] of this.#proxy.expected) {
      if (pattern.test(text)) {
        this.#proxy.expected.delete(pattern);
        resolve();
      }
    }
    this.#isMuted ||= this.#proxy.mutePattern?.test(text) === true;
    if (this.#isMuted || this.#proxy.dropPattern?.test(text) === true) {
      return;
    }
    const allowed = bytes.subarray(0, Math.min(bytes.length, this.#proxy.replyBytesLeft));
    this.#proxy.replyBytesLeft -= allowed.length;
    if (allowed.length > 0) {
      this.#forward("replies", allowed);
    }
  }

  #forward(direction: Direction, bytes: Buffer): void {
    if (!this.isHalfOpen) {
      this.#channels[direction].add(bytes, this.#proxy.delayMs);
    }
  }

  #isPaused(direction: Direction): boolean {
    const { paused } = this.#proxy;
    const kind = this.isSubscribed ? "messages" : "answers";
    return this.isHeldBack || paused.has(direction) || (direction === "replies" && paused.has(kind));
  }
}

/** One direction of a connection: bytes leave in the order in which they came, whatever they are late by. */
class DelayedChannel {
  readonly #target: Socket;
  readonly #isPaused: () => boolean;
  readonly #waiting: { readonly bytes: Buffer; readonly dueAt: number }[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(target: Socket, isPaused: () => boolean) {
    this.#target = target;
    this.#isPaused = isPaused;
  }

  add(bytes: Buffer, delayMs: number): void {
    this.#waiting.push({ bytes, dueAt: delayMs > 0 ? performance.now() + delayMs : 0 });
    this.flush();
  }

  /** Sends what is due, unless it is kept back. */
  flush(): void {
    clearTimeout(this.#timer);
    while (!this.#isPaused()) {
      const [first] = this.#waiting;
      const leftMs = first === undefined ? 0 : first.dueAt - performance.now();
      if (first === undefined || this.#target.destroyed) {
        return;
      }
      if (leftMs > 0) {
        this.#timer = setTimeout(() => {
          this.flush();
        }, Math.ceil(leftMs));
        return;
      }
      this.#waiting.shift();
      this.#target.write(first.bytes);
    }
  }
}
