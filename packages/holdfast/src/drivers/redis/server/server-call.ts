import type { Clock } from "../../../runtime/clock.ts";
import { backoffMs, type Random } from "../../../runtime/random.ts";
import type { Scheduled, TimerQueue } from "../../../runtime/timer-queue.ts";
import { RequestHistory } from "./request-history.ts";
import { engineError, isTransient, serverRefusal, timeoutError } from "./errors.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { RedisServer } from "./server.ts";
import type { Operation, Reply } from "../protocol/operation.ts";

/** What wakes when its moment has come. */
export interface Wakeable extends Scheduled {
  wake(): void;
}

interface CallHost {
  readonly clock: Clock;
  readonly random: Random;
  readonly commandTimeoutMs: number;
  readonly timers: TimerQueue<Wakeable>;
}

interface CallTarget {
  readonly key: string;
  readonly keys: LockKeys;
  readonly server: RedisServer;
  /** On the scale of `clock.now()`; null: it is tried for the time of a command. */
  readonly deadline: number | null;
}

/**
 * One question to one server: asked again until it is answered for good, cancelled, or its time is over. A failure that may pass is
 * repeated with growing pauses.
 */
export abstract class ServerCall<Answer> implements Operation, Wakeable {
  dueAt = 0;
  slot = -1;
  abstract readonly args: readonly string[];
  readonly key: string;
  readonly keys: LockKeys;
  readonly server: RedisServer;
  readonly result: Promise<Answer>;
  protected readonly history: RequestHistory = new RequestHistory();
  protected readonly deadline: number;
  protected isOpen = true;
  protected resolve!: (answer: Answer) => void;
  protected reject!: (reason: unknown) => void;
  readonly #host: CallHost;
  readonly #startedAt: number;

  constructor(host: CallHost, { key, keys, server, deadline }: CallTarget) {
    this.#host = host;
    this.key = key;
    this.keys = keys;
    this.server = server;
    this.#startedAt = host.clock.now();
    this.deadline = deadline ?? this.#startedAt + host.commandTimeoutMs;
    this.result = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  abstract answered(reply: Reply): void;
  /** What must be known of the server before it is asked; undefined: it is. */
  protected abstract prepare(): Promise<unknown> | undefined;
  /** Sends it, as it is open. */
  protected abstract send(): void;
  /** Settles it without an answer: what it may have left on the server is taken back. */
  protected abstract abandon(): void;
  /** Its time is over, and the server has answered. */
  protected abstract expired(): void;

  begin(): void {
    this.#host.timers.schedule(this, this.deadline);
    this.trySend();
  }

  /** Asks (again), unless it is settled. */
  trySend(): void {
    if (!this.isOpen) {
      return;
    }
    this.history.count += 1;
    const preparing = this.prepare();
    if (!preparing) {
      this.send();
      return;
    }
    preparing.then(
      () => {
        if (this.isOpen) {
          this.send();
        }
      },
      (error: unknown) => this.retryAfter(error),
    );
  }

  /** The server answers again. */
  recovered(): void {
    if (this.history.failures > 0) {
      this.trySend();
    }
  }

  /** Its moment has come: the deadline, or the poll. */
  wake(): void {
    if (this.#host.clock.now() < this.deadline) {
      this.begin();
      return;
    }
    const { outcome, lastError, wasAnswered } = this.history;
    const failure = lastError ?? (wasAnswered ? undefined : this.timedOutError());
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
    this.history.failed(error);
    this.retryAfter(error);
  }

  /** No answer came, or none could: tried again until the time is over, unless it cannot pass by itself. */
  protected retryAfter(error: unknown): void {
    if (!this.isOpen) {
      return;
    }
    this.history.lastError = error;
    if (!isTransient(error)) {
      this.fail(engineError(error, this.key, this.history.outcome));
      return;
    }
    this.history.failures += 1;
    this.retryIn(backoffMs(this.#host.random, this.history.failures));
  }

  /** The script ran and refused. */
  protected refused(message: string): void {
    const error = engineError(serverRefusal(message), this.key, "none");
    if (error.retryable) {
      this.retryAfter(error);
    } else {
      this.fail(error);
    }
  }

  protected fail(error: unknown): void {
    this.abandon();
    this.reject(error);
  }

  protected retryIn(delayMs: number): void {
    const { timers, clock } = this.#host;
    timers.schedule(this, Math.min(clock.now() + delayMs, this.deadline));
  }

  protected timedOutError(): Error {
    return timeoutError(this.deadline - this.#startedAt);
  }
}
