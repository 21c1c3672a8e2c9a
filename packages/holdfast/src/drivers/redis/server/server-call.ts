import type { Clock } from "../../../runtime/clock.ts";
import { backoffMs, type Random } from "../../../runtime/random.ts";
import type { Scheduled, TimerQueue } from "../../../runtime/timer-queue.ts";
import { isLockError } from "../../../errors.ts";
import { RequestHistory } from "./request-history.ts";
import { engineError, isTransient, serverRefusal, timeoutError, withServer } from "./errors.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { RedisServer } from "./server.ts";
import type { Operation, Reply } from "../protocol/operation.ts";

/** An entry of a timer queue. */
export interface Wakeable extends Scheduled {
  timerDue(): void;
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
  /** On the scale of `clock.now()`. Null: `commandTimeoutMs` from now. */
  readonly deadline: number | null;
}

/**
 * One request to one server. The request is repeated until a final reply, its cancellation, or its deadline. After a transient failure
 * the pause grows with each repeat.
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
  /** Resolves when the server's time is known, which the request requires. Undefined if the time is known already. */
  protected abstract prepare(): Promise<unknown> | undefined;
  /** Sends the request, which is open. */
  protected abstract send(): void;
  /** Ends the request without a final reply, and cleans up its residue on the server. */
  protected abstract abandon(): void;
  /** The deadline has passed, and the server has replied at least once. */
  protected abstract expired(): void;

  begin(): void {
    this.#host.timers.schedule(this, this.deadline);
    this.sendIfOpen();
  }

  /** Sends the request, for the first time or again, unless the request has ended. */
  sendIfOpen(): void {
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

  /** The server was unresponsive and replies again. */
  recovered(): void {
    if (this.history.failures > 0) {
      this.sendIfOpen();
    }
  }

  /** The timer is due: for the deadline, or for a poll. */
  timerDue(): void {
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

  /** Repeats the request after a pause, until the deadline. A permanent failure ends the request. */
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

  /** The script ran and refused the request. */
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
    this.reject(isLockError(error) ? withServer(error, this.server.connection) : error);
  }

  protected retryIn(delayMs: number): void {
    const { timers, clock } = this.#host;
    timers.schedule(this, Math.min(clock.now() + delayMs, this.deadline));
  }

  protected timedOutError(): Error {
    return timeoutError(this.deadline - this.#startedAt);
  }
}
