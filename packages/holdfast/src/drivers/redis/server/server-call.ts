import type { Clock } from "../../../runtime/clock.ts";
import { backoffMs, type Random } from "../../../runtime/random.ts";
import type { Timed, TimerQueue } from "../../../runtime/timer-queue.ts";
import { Attempts } from "./request-history.ts";
import { engineError, isTransient, refusalBy, timeoutError } from "./errors.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { Node } from "./server.ts";
import type { Operation, Reply } from "../protocol/operation.ts";

/** What wakes when its moment has come. */
export interface Waking extends Timed {
  wake(): void;
}

interface CallHost {
  readonly clock: Clock;
  readonly random: Random;
  readonly commandTimeoutMs: number;
  readonly agenda: TimerQueue<Waking>;
}

interface Called {
  readonly key: string;
  readonly keys: LockKeys;
  readonly node: Node;
  /** On the scale of `clock.now()`; null: it is tried for the time of a command. */
  readonly deadline: number | null;
}

/**
 * One question to one server: asked again until it is answered for good, cancelled, or its time is over. A failure that may pass is
 * repeated with growing pauses.
 */
export abstract class RepeatedCall<Answer> implements Operation, Waking {
  dueAt = 0;
  slot = -1;
  abstract readonly args: readonly string[];
  readonly key: string;
  readonly keys: LockKeys;
  readonly node: Node;
  readonly result: Promise<Answer>;
  protected readonly attempts: Attempts = new Attempts();
  protected readonly deadline: number;
  protected isOpen = true;
  protected resolve!: (answer: Answer) => void;
  protected reject!: (reason: unknown) => void;
  readonly #host: CallHost;
  readonly #since: number;

  constructor(host: CallHost, { key, keys, node, deadline }: Called) {
    this.#host = host;
    this.key = key;
    this.keys = keys;
    this.node = node;
    this.#since = host.clock.now();
    this.deadline = deadline ?? this.#since + host.commandTimeoutMs;
    this.result = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  abstract answered(reply: Reply): void;
  /** What must be known of the server before it is asked; undefined: it is. */
  protected abstract unready(): Promise<unknown> | undefined;
  /** Sends it, as it is open. */
  protected abstract send(): void;
  /** Settles it without an answer: what it may have left on the server is taken back. */
  protected abstract abandon(): void;
  /** Its time is over, and the server has answered. */
  protected abstract expired(): void;

  begin(): void {
    this.#host.agenda.schedule(this, this.deadline);
    this.attempt();
  }

  /** Asks (again), unless it is settled. */
  attempt(): void {
    if (!this.isOpen) {
      return;
    }
    this.attempts.count += 1;
    const unready = this.unready();
    if (!unready) {
      this.send();
      return;
    }
    unready.then(
      () => {
        if (this.isOpen) {
          this.send();
        }
      },
      (error: unknown) => this.failedToReach(error),
    );
  }

  /** The server answers again. */
  revived(): void {
    if (this.attempts.failures > 0) {
      this.attempt();
    }
  }

  /** Its moment has come: the deadline, or the poll. */
  wake(): void {
    if (this.#host.clock.now() < this.deadline) {
      this.begin();
      return;
    }
    const { outcome, lastError, wasAnswered } = this.attempts;
    const failure = lastError ?? (wasAnswered ? undefined : this.late());
    if (failure !== undefined) {
      this.fail(engineError(failure, this.key, outcome));
    } else {
      this.expired();
    }
  }

  cancel(reason: unknown): void {
    if (this.isOpen) {
      this.fail(reason);
    }
  }

  failed(error: unknown): void {
    this.attempts.failed(error);
    this.failedToReach(error);
  }

  /** No answer came, or none could: tried again until the time is over, unless it cannot pass by itself. */
  protected failedToReach(error: unknown): void {
    if (!this.isOpen) {
      return;
    }
    this.attempts.lastError = error;
    if (!isTransient(error)) {
      this.fail(engineError(error, this.key, this.attempts.outcome));
      return;
    }
    this.attempts.failures += 1;
    this.askAgainIn(backoffMs(this.#host.random, this.attempts.failures));
  }

  /** The script ran and refused. */
  protected refused(message: string): void {
    const error = engineError(refusalBy(message), this.key, "none");
    if (error.retryable) {
      this.failedToReach(error);
    } else {
      this.fail(error);
    }
  }

  protected fail(error: unknown): void {
    this.abandon();
    this.reject(error);
  }

  protected askAgainIn(delayMs: number): void {
    const { agenda, clock } = this.#host;
    agenda.schedule(this, Math.min(clock.now() + delayMs, this.deadline));
  }

  protected late(): Error {
    return timeoutError(this.deadline - this.#since);
  }
}
