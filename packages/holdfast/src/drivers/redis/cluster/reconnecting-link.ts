import type { Clock } from "../../../runtime/clock.ts";
import { EngineError } from "../../../errors.ts";
import { withTimeout } from "../../../runtime/timeout.ts";
import { isTransient, messageOf } from "../server/errors.ts";
import type { ClusterClient, NodeConnection, NodeConnectionListener } from "../clients/cluster-client.ts";

/** The pause after a failed connection, ms. */
const pauseMs = 100;

interface ReconnectingLinkOptions {
  readonly client: ClusterClient;
  readonly clock: Clock;
  readonly address: string;
  /** How long the connection may take to open, ms. */
  readonly timeoutMs: number;
  readonly listener: NodeConnectionListener;
}

/** A connection to one node. Opened at its first use, and opened again after its end. */
export class ReconnectingLink {
  readonly #options: ReconnectingLinkOptions;
  #opening: Promise<NodeConnection> | undefined;
  #current: NodeConnection | undefined;
  #failedAt = -Infinity;
  #failure: unknown;
  #isClosed = false;

  constructor(options: ReconnectingLinkOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#current !== undefined;
  }

  /** Rejects with an `EngineError` with outcome `none`, because nothing was sent. */
  connection(): Promise<NodeConnection> {
    const { clock } = this.#options;
    if (!this.#opening) {
      if (clock.now() - this.#failedAt < pauseMs || this.#isClosed) {
        return Promise.reject(this.#refusal(this.#failure));
      }
      this.#opening = this.#open();
      this.#opening.catch((error: unknown) => {
        this.#opening = undefined;
        this.#failure = error;
        this.#failedAt = clock.now();
      });
    }
    return this.#opening;
  }

  /** Ends the connection. Its calls in flight fail. */
  close(): void {
    this.#isClosed = true;
    this.#current?.close();
  }

  async #open(): Promise<NodeConnection> {
    const { client, clock, address, timeoutMs, listener } = this.#options;
    const opening = client.open(address, {
      message: (channel, text) => listener.message(channel, text),
      dropped: () => listener.dropped(),
      ended: () => {
        this.#current = undefined;
        this.#opening = undefined;
        listener.ended();
      },
    });
    try {
      const connection = await withTimeout(clock, timeoutMs, opening);
      if (connection === undefined || this.#isClosed) {
        closeWhenOpen(opening);
        throw new Error(this.#isClosed ? "the link is closed" : `no answer within ${timeoutMs} ms`);
      }
      this.#current = connection;
      return connection;
    } catch (error) {
      throw this.#refusal(error);
    }
  }

  #refusal(error: unknown): EngineError {
    const message = `${this.#options.address} cannot be reached: ${messageOf(error)}`;
    return error instanceof EngineError
      ? error
      : new EngineError(message, { outcome: "none", retryable: isTransient(error) });
  }
}

function closeWhenOpen(opening: Promise<NodeConnection>): void {
  opening.then(
    (connection) => connection.close(),
    () => undefined,
  );
}
