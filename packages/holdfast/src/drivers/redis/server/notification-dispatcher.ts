import { publish } from "../../../diagnostics.ts";
import type { LossReason } from "../../../errors.ts";
import type { Connection } from "../clients/connection.ts";
import {
  parseMessage,
  type Message,
  type ProcessAnswer,
  type ProcessQuestion,
  type PushedGrant,
} from "../protocol/messages.ts";

/** Receives the notifications of one server. */
export interface NotificationListener {
  granted(grant: PushedGrant): void;
  ended(token: string, reason: LossReason, cause: unknown): void;
  /** The waiter with this token has no queue entry any longer, and must send its request again. */
  retry?(token: string): void;
  /** Another process has verified its subscription to this client's channel. That process is a clone with the same tokens. */
  cloned(): void;
  /** The latch with this key and this time of creation is open. A quorum has no latches. */
  latchOpened?(lock: string, createdAt: string): void;
  processAsked?(question: ProcessQuestion): void;
  processAnswered?(answer: ProcessAnswer): void;
  /** An earlier competing request needs the vote with this number. Only a node of a quorum sends this notification. */
  voteRequestedBack?(token: string, number: number): void;
}

/** Calls the method of the listener that a notification is for. */
export class NotificationDispatcher {
  readonly #connection: Connection;
  readonly #listener: NotificationListener;
  /** How many notifications had a form that no script writes. */
  #malformed = 0;

  constructor(connection: Connection, listener: NotificationListener) {
    this.#connection = connection;
    this.#listener = listener;
  }

  /** A notification in a form that no script writes is counted and ignored. */
  dispatch(text: string): void {
    const message = parseMessage(text);
    if (message === undefined) {
      this.#countMalformed();
    } else if (message.kind === "process-question") {
      this.#listener.processAsked?.(message);
    } else if (message.kind === "process-answer") {
      this.#listener.processAnswered?.(message);
    } else {
      this.#deliver(message);
    }
  }

  #countMalformed(): void {
    this.#malformed += 1;
    publish("node", () => ({
      node: this.#connection.name,
      event: "malformed-message",
      detail: { count: this.#malformed },
    }));
  }

  #deliver(message: Exclude<Message, ProcessQuestion | ProcessAnswer>): void {
    const listener = this.#listener;
    switch (message.kind) {
      case "grant":
        listener.granted(message.grant);
        break;
      case "retry":
        listener.retry?.(message.token);
        break;
      case "latch-open":
        listener.latchOpened?.(message.lock, message.createdAt);
        break;
      case "inquiry":
        listener.voteRequestedBack?.(message.token, message.number);
        break;
      case "broken":
        listener.ended(message.token, "broken", new Error(message.reason));
        break;
      case "ping":
        listener.cloned();
    }
  }
}
