import type { StoreListener } from "../store/lease-store.ts";
import type { PostgresQuery } from "./client.ts";
import type { Listening } from "./listen.ts";
import type { ResolvedOptions } from "./options.ts";

const probe = "probe";

/**
 * The notifications for the waiters and holders of one driver, on a channel of its own. They count as arriving after a probe has
 * arrived, because with a pooler in transaction mode `LISTEN` succeeds and has no effect.
 */
export class Notifications {
  readonly channel: string;
  isArriving = false;
  readonly #listen: Listening;
  readonly #query: PostgresQuery;
  readonly #options: Pick<ResolvedOptions, "clock" | "random">;

  constructor(listen: Listening, query: PostgresQuery, options: Pick<ResolvedOptions, "clock" | "random">) {
    this.#listen = listen;
    this.#query = query;
    this.#options = options;
    this.channel = `holdfast_${options.random.id()}`;
  }

  /** @returns a function that ends the notifications */
  subscribe(listener: StoreListener): () => void {
    const events = {
      listening: () => this.#probe(),
      interrupted: () => {
        this.isArriving = false;
        listener.interrupted(); // waiters poll at short intervals from now on
      },
      received: (payload: string) => this.#received(payload, listener),
    };
    const stop = this.#listen(this.channel, events, this.#options);
    return () => {
      this.isArriving = false;
      stop();
    };
  }

  #probe(): void {
    // The COMMIT is refused inside of a transaction, whose notifications would be sent late or never.
    const sql = `DO $holdfast$ BEGIN COMMIT; PERFORM pg_notify('${this.channel}', '${probe}'); END $holdfast$`;
    const sent = this.#query(sql, []);
    sent.then(undefined, () => undefined); // without a probe, waiters poll
  }

  #received(payload: string, listener: StoreListener): void {
    if (payload === probe) {
      this.isArriving = true;
      listener.interrupted();
      return;
    }
    const [, kind, id = "", reason = ""] = /^(wake|broken) (\S+)(?: (.*))?$/s.exec(payload) ?? [];
    if (kind === "wake") {
      listener.wake(id);
    } else if (kind === "broken") {
      listener.lost(id, "broken", new Error(reason));
    }
  }
}
