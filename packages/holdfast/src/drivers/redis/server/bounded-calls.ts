import type { Clock, Timer } from "../../../runtime/clock.ts";
import type { EngineError } from "../../../errors.ts";
import {
  engineError,
  isReadOnlyError,
  isServerReply,
  isTransient,
  outcomeOf,
  timeoutError,
  unresponsive,
  withServer,
} from "./errors.ts";
import type { Connection } from "../clients/connection.ts";

/** The pause after a probe that failed at once. */
const minProbeMs = 100;
/** A probe without a reply is repeated after this fraction of the unresponsive time, because the client library may have dropped it. */
const probeFraction = 0.1;

/** The number of one call, in the order of sending. */
export type CallNumber = number;

interface ResponsivenessOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Sends a call to the server, past the batches. */
  readonly probe: () => Promise<unknown>;
  /** The server replies again. Refused calls should be repeated. */
  readonly recovered: () => void;
}

/**
 * Decides whether a server is unresponsive: a call had no reply in time, and nothing was received from the server since.
 *
 * Calls to an unresponsive server are refused, because the client library would retain them without limit. One probe is in flight.
 * Replies arrive in the order of the calls, so a reply ends the wait for all earlier calls.
 */
export class Responsiveness {
  readonly #options: ResponsivenessOptions;
  #lastCall: CallNumber = 0;
  /** Calls without a reply in time, which the client library may still retain. */
  readonly #unanswered = new Set<CallNumber>();
  /** The last call before a notification arrived on the other connection. */
  #receivedUpTo: CallNumber = 0;
  #probe: CallNumber = 0;
  #since = 0;
  #notBefore = -Infinity;

  constructor(options: ResponsivenessOptions) {
    this.#options = options;
  }

  get isUnresponsive(): boolean {
    return this.#unanswered.size > 0;
  }

  /** A call is sent. */
  callSent(): CallNumber {
    return ++this.#lastCall;
  }

  /** A call had no reply in time. The server is still responsive if a notification arrived after the call. */
  callTimedOut(callNumber: CallNumber): void {
    if (callNumber <= this.#receivedUpTo) {
      return;
    }
    const isFirst = !this.isUnresponsive;
    this.#unanswered.add(callNumber);
    if (isFirst) {
      this.#since = this.#options.clock.now();
      this.#sendProbe(); // at once, because a much later call must not be refused after one lost reply
    }
  }

  callAnswered(callNumber: CallNumber): void {
    if (this.isUnresponsive) {
      for (const other of this.#unanswered) {
        if (other <= callNumber) {
          this.#unanswered.delete(other);
        }
      }
      this.#reportRecovery();
    }
  }

  /** A call failed. Either the error is a reply of the server, or the client library has dropped the call. */
  callFailed(callNumber: CallNumber, error: unknown): void {
    if (isServerReply(error)) {
      this.callAnswered(callNumber);
    } else if (!isTransient(error)) {
      this.messageReceived(); // the client library refuses calls at once and retains none, so callers get its error
    } else {
      this.#unanswered.delete(callNumber);
    }
  }

  /** A notification arrived on the other connection. */
  messageReceived(): void {
    this.#receivedUpTo = this.#lastCall;
    if (this.isUnresponsive) {
      this.#unanswered.clear();
      this.#reportRecovery();
    }
  }

  /** The error of a refused call. Sends the next probe if it is due. */
  rejection(): EngineError {
    if (this.#options.clock.now() >= this.#notBefore) {
      this.#sendProbe();
    }
    return unresponsive;
  }

  #sendProbe(): void {
    const { clock, timeoutMs, probe } = this.#options;
    const now = clock.now();
    const callNumber = this.callSent();
    this.#probe = callNumber;
    this.#notBefore = now + Math.max(timeoutMs, probeFraction * (now - this.#since));
    probe()
      .then(
        () => this.callAnswered(callNumber),
        (error: unknown) => this.callFailed(callNumber, error),
      )
      .finally(() => {
        if (this.#probe === callNumber) {
          this.#notBefore = Math.max(clock.now(), now + minProbeMs);
        }
      });
  }

  #reportRecovery(): void {
    if (!this.isUnresponsive) {
      this.#options.recovered();
    }
  }
}

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
