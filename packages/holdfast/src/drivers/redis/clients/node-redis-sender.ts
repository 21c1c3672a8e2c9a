import { setMaxListeners } from "node:events";

import { EngineError } from "../../../errors.ts";
import { isTransient, messageOf } from "../server/errors.ts";

/** The members of a node-redis client that send commands. */
export interface SendingClient {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  /** In versions 5 and 6 the signal removes a command that is not written yet. The signal of version 4 breaks its queue. */
  sendCommand(args: string[], options?: { readonly abortSignal: AbortSignal }): Promise<unknown>;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
}

interface Options {
  readonly username?: string;
  readonly database?: number;
  readonly disableOfflineQueue?: boolean;
}

interface WaitingCommand {
  send(): void;
  reject(reason: unknown): void;
}

const senders = new WeakMap<SendingClient, VerifiedSender>();

/** The sender of a client. Drivers on the same client share the sender, because each sender adds listeners. */
export function verifiedSender(client: SendingClient): VerifiedSender {
  const sender = senders.get(client) ?? new VerifiedSender(client);
  senders.set(client, sender);
  return sender;
}

/**
 * Sends commands by a node-redis client, after the server has accepted the user and the database of the connection.
 *
 * node-redis itself writes waiting commands together with `AUTH` and `SELECT`. If the server refuses these, it runs the commands as its
 * default user and in database 0. So this class holds the commands back, in order, until the client is ready.
 */
export class VerifiedSender {
  readonly #client: SendingClient;
  readonly #options: Options;
  readonly #waiting: WaitingCommand[] = [];
  /** Aborted when the connection is lost. */
  #connection = unlimitedAbortController();
  /** The error of the last refused connection, until a connection is accepted. */
  #refusal: EngineError | undefined;

  constructor(client: SendingClient) {
    this.#client = client;
    this.#options = (client as { options?: Options }).options ?? {};
    client.on("ready", this.#ready);
    client.on("error", this.#failed);
    client.on("end", () => this.#failed(new Error("The client is closed")));
  }

  send(args: string[]): Promise<unknown> {
    const { isOpen, isReady } = this.#client;
    if (isReady && this.#waiting.length === 0) {
      return this.#send(args);
    } else if (!isReady && this.#refusal) {
      return Promise.reject(this.#refusal);
    } else if (!isOpen || this.#options.disableOfflineQueue === true) {
      return this.#client.sendCommand(args); // node-redis rejects the command
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({
        send: () => void this.#send(args).then(resolve, reject),
        reject,
      });
    });
  }

  /** The signal removes an unwritten command when the connection is lost. Otherwise the client sends it together with the next `AUTH`. */
  async #send(args: string[]): Promise<unknown> {
    const { signal } = this.#connection;
    const answer = await this.#client.sendCommand(args, { abortSignal: signal });
    if (signal.aborted) {
      throw new Error("The connection was lost before the reply");
    }
    return answer;
  }

  readonly #ready = (): void => {
    this.#refusal = undefined;
    this.#connection = unlimitedAbortController();
    for (const command of this.#waiting.splice(0)) {
      command.send();
    }
  };

  readonly #failed = (error: unknown): void => {
    if (this.#client.isReady) {
      return; // not an error of the connection
    }
    this.#connection.abort();
    if (!isTransient(error)) {
      this.#refusal = this.#refused(error);
    }
    if (this.#refusal !== undefined || !this.#client.isOpen) {
      for (const command of this.#waiting.splice(0)) {
        command.reject(this.#refusal ?? error);
      }
    }
  };

  #refused(error: unknown): EngineError {
    const { username = "default", database = 0 } = this.#options;
    const expected = `Expected user "${username}" and database ${database}`;
    return new EngineError(`Redis: ${expected}, the server refuses the connection: ${messageOf(error)}`, {
      outcome: "none",
      retryable: false,
      cause: new Error(messageOf(error)),
    });
  }
}

/** An abort controller without a limit of listeners. Each command in flight adds one, and Node warns after ten. */
function unlimitedAbortController(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
