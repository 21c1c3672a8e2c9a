import type { Clock } from "../../../runtime/clock.ts";
import type { EngineError } from "../../../errors.ts";
import { isServerReply, isTransient, unresponsiveError } from "./errors.ts";

/** A probe that failed at once is repeated after this. */
const minProbeMs = 100;
/** A probe without an answer is repeated after this part of the silence, and not before the time of a call: its client may have dropped it. */
const probeFraction = 0.1;

/** One question to a server, numbered in the order of sending. */
export type CallNumber = number;

interface ResponsivenessOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Sends a question of its own. */
  readonly probe: () => Promise<unknown>;
  /** The server answers again: what was refused is worth another try. */
  readonly recovered: () => void;
}

/**
 * Whether a server is silent: a question got no answer in its time, and nothing was heard since. A client library keeps what it
 * cannot deliver, so calls to a silent server are refused, and one probe is under way. Answers come in the order of the questions:
 * an answer ends the wait for all earlier questions.
 */
export class Responsiveness {
  readonly #options: ResponsivenessOptions;
  #lastCall: CallNumber = 0;
  /** Questions that were given up, and that the client library may still keep. */
  readonly #unanswered = new Set<CallNumber>();
  /** The last question before something was heard on another connection. */
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

  /** A question is being sent. */
  callSent(): CallNumber {
    return ++this.#lastCall;
  }

  /** No answer came in time. That is no silence where the server was heard since the question. */
  callTimedOut(callNumber: CallNumber): void {
    if (callNumber <= this.#receivedUpTo) {
      return;
    }
    const isFirst = !this.isUnresponsive;
    this.#unanswered.add(callNumber);
    if (isFirst) {
      this.#since = this.#options.clock.now();
      this.#sendProbe(); // at once: a caller that comes much later must not be refused for one lost answer
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

  /** The question failed. The error is the server's own answer, or the client library has dropped the question. */
  callFailed(callNumber: CallNumber, error: unknown): void {
    if (isServerReply(error)) {
      this.callAnswered(callNumber);
    } else if (!isTransient(error)) {
      this.messageReceived(); // the client refuses at once and keeps nothing: callers are to learn why
    } else {
      this.#unanswered.delete(callNumber);
    }
  }

  /** The server was heard by another connection. */
  messageReceived(): void {
    this.#receivedUpTo = this.#lastCall;
    if (this.isUnresponsive) {
      this.#unanswered.clear();
      this.#reportRecovery();
    }
  }

  /** Why a call is not sent. */
  rejection(): EngineError {
    if (this.#options.clock.now() >= this.#notBefore) {
      this.#sendProbe();
    }
    return unresponsiveError();
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
