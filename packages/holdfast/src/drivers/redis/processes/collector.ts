import type { ProcessState } from "../../../processes/process-state.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { pause } from "../../../runtime/timeout.ts";
import type { ProcessAnswer } from "../protocol/messages.ts";
import { parseAnswer } from "./process-answer.ts";

/** A registered client that was asked. */
export interface AskedClient {
  readonly clientId: string;
  /** Whether a process subscribes to the client's channel. A cluster does not report it. */
  readonly isSubscribed: boolean;
  /** The time since its last registration, ms. */
  readonly seenMs: number;
}

/** Collects the answers to one question. An unexpected answer is ignored. */
export class AnswerCollector {
  readonly answers: Map<string, ProcessState[]> = new Map();
  readonly #expected = new Set<string>();
  readonly #ended = new AbortController();
  #isAsking = true;

  /** A client may answer before the reply to the question, so answers of unknown clients are kept until {@link wait}. */
  received({ clientId, body }: ProcessAnswer): void {
    if (this.answers.has(clientId) || (!this.#isAsking && !this.#expected.has(clientId))) {
      return;
    }
    const states = parseAnswer(body);
    if (states) {
      this.answers.set(clientId, states);
      this.#expected.delete(clientId);
      this.#endIfComplete();
    }
  }

  /** Waits until all subscribed clients have answered, for at most `timeoutMs`. */
  async wait(clients: readonly AskedClient[], clock: Clock, timeoutMs: number): Promise<void> {
    this.#isAsking = false;
    const known = new Set(clients.map(({ clientId }) => clientId));
    for (const clientId of this.answers.keys()) {
      if (!known.has(clientId)) {
        this.answers.delete(clientId);
      }
    }
    for (const { clientId, isSubscribed } of clients) {
      if (isSubscribed && !this.answers.has(clientId)) {
        this.#expected.add(clientId);
      }
    }
    this.#endIfComplete();
    await pause(clock, timeoutMs, true, this.#ended.signal);
  }

  end(): void {
    this.#ended.abort();
  }

  #endIfComplete(): void {
    if (!this.#isAsking && this.#expected.size === 0) {
      this.end();
    }
  }
}
