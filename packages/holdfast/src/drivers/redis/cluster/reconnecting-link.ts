import type { Clock } from "../../../runtime/clock.ts";
import { EngineError } from "../../../errors.ts";
import { within } from "../../../runtime/timeout.ts";
import { isTransient, messageOf } from "../server/errors.ts";
import type { ClusterClient, Link, LinkListener } from "../clients/cluster-client.ts";

/** Who could not be reached is not asked again sooner, ms. */
const pauseMs = 100;

interface LaneOptions {
  readonly client: ClusterClient;
  readonly clock: Clock;
  readonly address: string;
  /** How long it may take to be open, ms. */
  readonly patienceMs: number;
  readonly listener: LinkListener;
}

/** The way to one node for one purpose: a connection that is made when it is needed, and again after it ended. */
export class Lane {
  readonly #options: LaneOptions;
  #opening: Promise<Link> | undefined;
  #link: Link | undefined;
  #failedAt = -Infinity;
  #failure: unknown;
  #isClosed = false;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#link !== undefined;
  }

  /** Rejects with an `EngineError` of outcome `none`: nothing was sent. */
  link(): Promise<Link> {
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

  /** Ends the connection: what waits for an answer there fails. */
  close(): void {
    this.#isClosed = true;
    this.#link?.close();
  }

  async #open(): Promise<Link> {
    const { client, clock, address, patienceMs, listener } = this.#options;
    const opening = client.open(address, {
      message: (channel, text) => listener.message(channel, text),
      dropped: () => listener.dropped(),
      ended: () => {
        this.#link = undefined;
        this.#opening = undefined;
        listener.ended();
      },
    });
    try {
      const link = await within(clock, patienceMs, opening);
      if (link === undefined || this.#isClosed) {
        closeWhenOpen(opening);
        throw new Error(this.#isClosed ? "it is closed" : `no answer within ${patienceMs} ms`);
      }
      this.#link = link;
      return link;
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

function closeWhenOpen(opening: Promise<Link>): void {
  opening.then(
    (link) => link.close(),
    () => undefined,
  );
}
