import type { Timer } from "../../../runtime/clock.ts";
import type { StoreFailure } from "../../store/lease-store.ts";
import type { Connection } from "../clients/connection.ts";
import type { RedisSettings } from "../options.ts";
import { engineError, isReadOnlyError, isTransient, messageOf, outcomeOf } from "../server/errors.ts";
import type { Script } from "./script.ts";

/** Sends the requests of a layout. A request without a reply in time, or with the reply of a replica, starts a search for the primary. */
export class LayoutCalls {
  readonly connection: Connection;
  readonly #settings: RedisSettings;
  #refreshedAt = -Infinity;

  constructor(connection: Connection, settings: RedisSettings) {
    this.connection = connection;
    this.#settings = settings;
  }

  /** Rejects with a `LockError` if the key is another kind of lock. @param key shown in errors */
  async run(
    key: string | undefined,
    script: Script,
    keys: readonly string[],
    args: readonly string[],
  ): Promise<unknown> {
    const { clock, commandTimeoutMs } = this.#settings;
    const timer: Timer = clock.setTimer(() => this.#refresh(), commandTimeoutMs);
    try {
      return await this.connection.run(script, keys, args);
    } catch (error) {
      if (isReadOnlyError(error)) {
        this.#refresh();
      }
      const failure = engineError(error, key, outcomeOf(error));
      throw failure.code === "kind-mismatch" ? failure : new Error(messageOf(error)); // without the command, which has the token
    } finally {
      clock.clearTimer(timer);
    }
  }

  #refresh(): void {
    const { clock, commandTimeoutMs } = this.#settings;
    if (clock.now() - this.#refreshedAt >= commandTimeoutMs) {
      this.#refreshedAt = clock.now();
      this.connection.refreshPrimary?.();
    }
  }
}

export function layoutFailure(error: unknown): StoreFailure {
  const { message } = engineError(error, undefined, "none");
  return { message, outcome: outcomeOf(error), retryable: isTransient(error) };
}
