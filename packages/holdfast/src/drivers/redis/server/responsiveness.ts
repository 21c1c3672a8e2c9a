import type { Clock } from "../../../runtime/clock.ts";
import type { EngineError } from "../../../errors.ts";
import { isAnswer, isTransient, silentError } from "./errors.ts";

/** A probe that failed at once is repeated after this. */
const shortestProbeMs = 100;
/** A probe without an answer is repeated after this part of the silence, and not before the time of a call: its client may have dropped it. */
const probeShare = 0.1;

/** One question to a server, numbered in the order of sending. */
export type Question = number;

interface SilenceOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Sends a question of its own. */
  readonly probe: () => Promise<unknown>;
  /** The server answers again: what was refused is worth another try. */
  readonly ended: () => void;
}

/**
 * Whether a server is silent: a question got no answer in its time, and nothing was heard since. A client library keeps what it
 * cannot deliver, so calls to a silent server are refused, and one probe is under way. Answers come in the order of the questions:
 * an answer ends the wait for all earlier questions.
 */
export class Silence {
  readonly #options: SilenceOptions;
  #asked: Question = 0;
  /** Questions that were given up, and that the client library may still keep. */
  readonly #unanswered = new Set<Question>();
  /** The last question before something was heard on another connection. */
  #heardBehind: Question = 0;
  #probe: Question = 0;
  #since = 0;
  #notBefore = -Infinity;

  constructor(options: SilenceOptions) {
    this.#options = options;
  }

  get isOn(): boolean {
    return this.#unanswered.size > 0;
  }

  /** A question is being sent. */
  ask(): Question {
    return ++this.#asked;
  }

  /** No answer came in time. That is no silence where the server was heard since the question. */
  gaveUp(question: Question): void {
    if (question <= this.#heardBehind) {
      return;
    }
    const isFirst = !this.isOn;
    this.#unanswered.add(question);
    if (isFirst) {
      this.#since = this.#options.clock.now();
      this.#sendProbe(); // at once: a caller that comes much later must not be refused for one lost answer
    }
  }

  answered(question: Question): void {
    if (this.isOn) {
      for (const other of this.#unanswered) {
        if (other <= question) {
          this.#unanswered.delete(other);
        }
      }
      this.#endIfOver();
    }
  }

  /** The question failed. The error is the server's own answer, or the client library has dropped the question. */
  failed(question: Question, error: unknown): void {
    if (isAnswer(error)) {
      this.answered(question);
    } else if (!isTransient(error)) {
      this.heard(); // the client refuses at once and keeps nothing: callers are to learn why
    } else {
      this.#unanswered.delete(question);
    }
  }

  /** The server was heard by another connection. */
  heard(): void {
    this.#heardBehind = this.#asked;
    if (this.isOn) {
      this.#unanswered.clear();
      this.#endIfOver();
    }
  }

  /** Why a call is not sent. */
  refuse(): EngineError {
    if (this.#options.clock.now() >= this.#notBefore) {
      this.#sendProbe();
    }
    return silentError();
  }

  #sendProbe(): void {
    const { clock, timeoutMs, probe } = this.#options;
    const now = clock.now();
    const question = this.ask();
    this.#probe = question;
    this.#notBefore = now + Math.max(timeoutMs, probeShare * (now - this.#since));
    probe()
      .then(
        () => this.answered(question),
        (error: unknown) => this.failed(question, error),
      )
      .finally(() => {
        if (this.#probe === question) {
          this.#notBefore = Math.max(clock.now(), now + shortestProbeMs);
        }
      });
  }

  #endIfOver(): void {
    if (!this.isOn) {
      this.#options.ended();
    }
  }
}
