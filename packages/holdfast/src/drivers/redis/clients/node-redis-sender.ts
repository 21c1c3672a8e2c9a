import { setMaxListeners } from "node:events";

import { EngineError } from "../../../errors.ts";
import { isTransient, messageOf } from "../server/errors.ts";

/** What we use of a node-redis client to send its commands. */
export interface SendingClient {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  /** Of versions 5 and 6: the signal takes back a command that is not written yet. That of version 4 breaks its queue. */
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

/** One for each client, so that many drivers on a client add no listeners. */
export function verifiedSender(client: SendingClient): VerifiedSender {
  const sender = senders.get(client) ?? new VerifiedSender(client);
  senders.set(client, sender);
  return sender;
}

/**
 * Sends commands by a node-redis client on connections whose handshake has passed: the server has accepted the user and the database.
 * node-redis itself writes waiting commands together with `AUTH` and `SELECT`, and the server runs them also where it refuses these,
 * as its default user and in database 0. So commands wait here, in order, until the client is ready.
 */
export class VerifiedSender {
  readonly #client: SendingClient;
  readonly #options: Options;
  readonly #waiting: WaitingCommand[] = [];
  /** Aborted when the connection is lost. */
  #connection = anyNumberOfCommands();
  /** Why the server refused the last handshake, until one passes. */
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
      return this.#client.sendCommand(args); // which rejects
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({
        send: () => void this.#send(args).then(resolve, reject),
        reject,
      });
    });
  }

  /** The client must not carry a command over to its next connection, where it goes out with the handshake. */
  async #send(args: string[]): Promise<unknown> {
    const { signal } = this.#connection;
    const answer = await this.#client.sendCommand(args, { abortSignal: signal });
    if (signal.aborted) {
      throw new Error("The connection was lost before the answer");
    }
    return answer;
  }

  readonly #ready = (): void => {
    this.#refusal = undefined;
    this.#connection = anyNumberOfCommands();
    for (const command of this.#waiting.splice(0)) {
      command.send();
    }
  };

  readonly #failed = (error: unknown): void => {
    if (this.#client.isReady) {
      return; // not of the connection
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

/** Each command under way adds a listener to the signal; Node warns of more than ten. */
function anyNumberOfCommands(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
