import type { Clock, Timer } from "../../../runtime/clock.ts";
import type { Connection } from "../clients/connection.ts";
import { engineError, isReadOnlyError, outcomeOf, timeoutError, withServer } from "./errors.ts";
import type { Responsiveness } from "./responsiveness.ts";

interface BoundedCallsOptions {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly commandTimeoutMs: number;
  readonly responsiveness: Responsiveness;
}

/** Sends the calls that are not batched. Each call rejects with an `EngineError`, at the latest after `commandTimeoutMs`. */
export class BoundedCalls {
  readonly #options: BoundedCallsOptions;
  #primaryRefreshedAt = -Infinity;
  #isClosed = false;

  constructor(options: BoundedCallsOptions) {
    this.#options = options;
  }

  readonly run: Connection["run"] = (script, keys, args) =>
    this.#withTimeout(() => this.#options.connection.run(script, keys, args));

  readonly command: Connection["command"] = (name, args) =>
    this.#withTimeout(() => this.#options.connection.command(name, args));

  /**
   * Looks for the primary again, because this server may be a replica now. At most one search in each `commandTimeoutMs`, because a
   * search needs time to succeed.
   */
  readonly refreshPrimary = (): void => {
    const { clock, commandTimeoutMs, connection } = this.#options;
    if (clock.now() - this.#primaryRefreshedAt >= commandTimeoutMs && !this.#isClosed) {
      this.#primaryRefreshedAt = clock.now();
      connection.refreshPrimary?.();
    }
  };

  close(): void {
    this.#isClosed = true;
  }

  async #withTimeout(send: () => Promise<unknown>): Promise<unknown> {
    const { clock, commandTimeoutMs, responsiveness } = this.#options;
    if (responsiveness.isUnresponsive) {
      throw withServer(responsiveness.rejection(), this.#options.connection);
    }
    const callNumber = responsiveness.callSent();
    let timer: Timer;
    const timedOut = new Promise<never>((_resolve, reject) => {
      timer = clock.setTimer(() => {
        this.refreshPrimary();
        responsiveness.callTimedOut(callNumber);
        reject(timeoutError(commandTimeoutMs));
      }, commandTimeoutMs);
    });
    const sent = send();
    sent.then(
      () => responsiveness.callAnswered(callNumber),
      (error: unknown) => responsiveness.callFailed(callNumber, error),
    );
    try {
      return await Promise.race([sent, timedOut]);
    } catch (error) {
      if (isReadOnlyError(error)) {
        this.refreshPrimary();
      }
      throw withServer(engineError(error, undefined, outcomeOf(error)), this.#options.connection);
    } finally {
      clock.clearTimer(timer);
    }
  }
}
