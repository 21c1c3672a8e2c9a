import type { Socket } from "node:net";

/** Which way bytes go: `requests` to the server, `replies` (and messages) from it. */
export type Direction = "requests" | "replies";
/** The bytes that can be held: one direction, or only the replies to subscribed or unsubscribed connections. */
export type Flow = Direction | "messages" | "answers";

/** A request for messages: of Redis, PostgreSQL or etcd. */
const subscription = /subscribe\r\n|listen "|POST \/v3\/watch/i;

/** The disturbances that a proxy sets for all its connections. */
export interface Disturbances {
  readonly paused: ReadonlySet<Flow>;
  readonly pattern: RegExp | undefined;
  readonly dropPattern: RegExp | undefined;
  readonly mutePattern: RegExp | undefined;
  readonly delayMs: number;
  replyBytesLeft: number;
  replyLoss: { readonly pattern: RegExp; readonly done: () => void } | undefined;
  readonly expected: Map<RegExp, () => void>;
}

/** One connection through the proxy. */
export class ProxiedConnection {
  isHeldBack = false;
  isSubscribed = false;
  isHalfOpen = false;
  #isMuted = false;
  #dropsNextReply = false;
  readonly #disturbances: Disturbances;
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #channels: Record<Direction, DelayedChannel>;

  constructor(disturbances: Disturbances, client: Socket, server: Socket, ended: () => void) {
    this.#disturbances = disturbances;
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
    this.isSubscribed ||= subscription.test(text);
    this.isHeldBack ||= this.#disturbances.pattern?.test(text) === true;
    if (this.#disturbances.replyLoss?.pattern.test(text) === true) {
      this.#dropsNextReply = true;
    }
    this.#forward("requests", bytes);
  }

  #replied(bytes: Buffer): void {
    if (this.#dropsNextReply) {
      this.#dropsNextReply = false;
      this.#disturbances.replyLoss?.done();
      this.#disturbances.replyLoss = undefined;
      this.cut();
      return;
    }
    const text = bytes.toString("latin1");
    for (const [pattern, resolve] of this.#disturbances.expected) {
      if (pattern.test(text)) {
        this.#disturbances.expected.delete(pattern);
        resolve();
      }
    }
    this.#isMuted ||= this.#disturbances.mutePattern?.test(text) === true;
    if (this.#isMuted || this.#disturbances.dropPattern?.test(text) === true) {
      return;
    }
    const allowed = bytes.subarray(0, Math.min(bytes.length, this.#disturbances.replyBytesLeft));
    this.#disturbances.replyBytesLeft -= allowed.length;
    if (allowed.length > 0) {
      this.#forward("replies", allowed);
    }
  }

  #forward(direction: Direction, bytes: Buffer): void {
    if (!this.isHalfOpen) {
      this.#channels[direction].add(bytes, this.#disturbances.delayMs);
    }
  }

  #isPaused(direction: Direction): boolean {
    const { paused } = this.#disturbances;
    const kind = this.isSubscribed ? "messages" : "answers";
    return this.isHeldBack || paused.has(direction) || (direction === "replies" && paused.has(kind));
  }
}

/** One direction of a connection. The order of bytes is preserved, even if the delay changes. */
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

  /** Sends the bytes that are due, unless the direction is paused. */
  flush(): void {
    clearTimeout(this.#timer);
    while (!this.#isPaused()) {
      const [first] = this.#waiting;
      const remainingMs = first === undefined ? 0 : first.dueAt - performance.now();
      if (first === undefined || this.#target.destroyed) {
        return;
      }
      if (remainingMs > 0) {
        this.#timer = setTimeout(() => {
          this.flush();
        }, Math.ceil(remainingMs));
        return;
      }
      this.#waiting.shift();
      this.#target.write(first.bytes);
    }
  }
}
