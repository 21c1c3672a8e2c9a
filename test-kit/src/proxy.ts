import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

import { ProxiedConnection, type Disturbances, type Flow } from "./proxied-connection.ts";

/**
 * A TCP proxy in front of a server, which can disturb connections. Every disturbance affects all connections, present and future.
 */
export interface Proxy {
  readonly port: number;
  /** How many connections are open. */
  readonly size: number;
  /** Holds the bytes of this flow, in order, until `resume`. */
  pause(flow: Flow): void;
  resume(flow: Flow): void;
  /** Holds each connection from its first matching request on, until `releaseHeld`. With undefined no further connection is held. */
  holdBack(pattern: RegExp | undefined): void;
  /** How many connections were refused. */
  readonly refusals: number;
  /** How many connections are held. */
  readonly heldBack: number;
  /** Forwards the held bytes. */
  releaseHeld(): void;
  /** Drops the server's first bytes after a matching request, then cuts that connection. Resolves after the cut. */
  loseNextReply(pattern?: RegExp): Promise<void>;
  /** Cancels `loseNextReply`. */
  cancelReplyLoss(): void;
  /** Resolves when the server has sent matching bytes, even if they are dropped later. */
  serverSent(pattern: RegExp): Promise<void>;
  /** Drops matching messages until it is called with undefined. Do not drop replies, because clients match replies by order. */
  dropMatching(pattern: RegExp | undefined): void;
  /** Drops everything that the server sends on a connection from its first matching bytes on. */
  muteConnections(pattern: RegExp): void;
  /** Forwards `afterBytes` further bytes of replies, then drops all replies until `stopDroppingReplies`. */
  dropReplies(afterBytes?: number): void;
  stopDroppingReplies(): void;
  /** Delays both directions by `ms`. The order of bytes is preserved, also after a change of the delay. */
  delay(ms: number): void;
  /** Ends every open connection, or those that never subscribed. */
  cut(selection?: "commands"): void;
  /** Makes subscribed connections half-open: neither bytes nor the end of either side passes. */
  halfOpenSubscriptions(): void;
  /** While set, new connections are closed immediately. */
  refuse(refuses: boolean): void;
  stop(): Promise<void>;
}

export async function startProxy(targetPort: number): Promise<Proxy> {
  const proxy = new TcpProxy(targetPort);
  await proxy.listen();
  return proxy;
}

class TcpProxy implements Proxy, Disturbances {
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
