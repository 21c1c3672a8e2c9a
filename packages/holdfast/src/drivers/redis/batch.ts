import { momentOf, type Clock, type Moment, type Timer } from "../../clock.ts";
import type { Connection } from "./connection.ts";
import { timeoutError } from "./failures.ts";
import type { LockKeys } from "./keys.ts";
import { operate } from "./scripts.generated.ts";

/** What came back for one operation, and when it had been asked. */
export interface Reply {
  readonly value: unknown;
  readonly sent: Moment;
  readonly serverMicros: number;
  /** Whether no connection was lost between the request and now. */
  readonly isSteady: boolean;
}

/** One operation of the script `operate`. */
export interface Operation {
  readonly keys: LockKeys;
  /** Its name and its arguments. */
  readonly args: readonly string[];
  /** The answer. It may still come after a timeout was told. */
  answered(reply: Reply): void;
  /** No answer: whether it was carried out is unknown. */
  failed(error: unknown): void;
}

const largestBatch = 128;
/** A turn's operations go in two calls: the server works on the second while we read the answers of the first. */
const parts = 2;
const smallestPart = 4;
/** More calls under way than this gain nothing: what comes meanwhile is gathered into the next. */
const mostCalls = 8;

/** Operations of one turn of the event loop to one node travel together, in as few script calls as pay, each apart from the errors of the others. */
export class Batcher {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #settings: readonly [retentionMs: string, queueBound: string];
  readonly #timeoutMs: number;
  readonly #onReply: (serverMicros: number, sent: Moment, received: number) => void;
  #waiting: Operation[] = [];
  #isScheduled = false;
  #calls = 0;
  #epoch = 0;

  constructor(
    connection: Connection,
    clock: Clock,
    settings: { readonly retentionMs: number; readonly queueBound: number; readonly timeoutMs: number },
    onReply: (serverMicros: number, sent: Moment, received: number) => void,
  ) {
    this.#connection = connection;
    this.#clock = clock;
    this.#settings = [String(settings.retentionMs), String(settings.queueBound)];
    this.#timeoutMs = settings.timeoutMs;
    this.#onReply = onReply;
  }

  perform(operation: Operation): void {
    this.#waiting.push(operation);
    this.#schedule();
  }

  /** A connection was lost: replies to what was sent before are not steady. */
  interrupted(): void {
    this.#epoch += 1;
  }

  #schedule(): void {
    if (!this.#isScheduled && this.#calls < mostCalls) {
      this.#isScheduled = true;
      process.nextTick(this.#flush); // after all promises of this turn have run
    }
  }

  readonly #flush = (): void => {
    this.#isScheduled = false;
    const ways = Math.min(parts, mostCalls - this.#calls);
    const share = Math.max(smallestPart, Math.ceil(this.#waiting.length / ways));
    while (this.#waiting.length > 0 && this.#calls < mostCalls) {
      this.#call(this.#waiting.splice(0, Math.min(share, largestBatch)));
    }
  };

  #call(operations: readonly Operation[]): void {
    const keys: string[] = [];
    const args: string[] = [...this.#settings];
    for (const operation of operations) {
      for (const key of operation.keys) {
        keys.push(key);
      }
      for (const argument of operation.args) {
        args.push(argument);
      }
    }
    const call = new Call(operations, momentOf(this.#clock), this.#epoch);
    this.#calls += 1;
    const timer: Timer = this.#clock.setTimer(() => {
      this.#done(call);
      call.fail(timeoutError(this.#timeoutMs));
    }, this.#timeoutMs);
    this.#connection.run(operate, keys, args).then(
      (answers) => {
        this.#clock.clearTimer(timer);
        this.#done(call);
        const [serverMicros, ...values] = answers as [unknown, ...unknown[]];
        this.#onReply(Number(serverMicros), call.sent, this.#clock.now());
        call.answer(values, Number(serverMicros), call.epoch === this.#epoch);
      },
      (error: unknown) => {
        this.#clock.clearTimer(timer);
        this.#done(call);
        call.fail(error);
      },
    );
  }

  #done(call: Call): void {
    if (call.isUnderWay) {
      call.isUnderWay = false;
      this.#calls -= 1;
      if (this.#waiting.length > 0) {
        this.#schedule();
      }
    }
  }
}

class Call {
  readonly operations: readonly Operation[];
  readonly sent: Moment;
  readonly epoch: number;
  isUnderWay = true;

  constructor(operations: readonly Operation[], sent: Moment, epoch: number) {
    this.operations = operations;
    this.sent = sent;
    this.epoch = epoch;
  }

  answer(values: readonly unknown[], serverMicros: number, isSteady: boolean): void {
    this.operations.forEach((operation, index) => {
      try {
        operation.answered({ value: values[index], sent: this.sent, serverMicros, isSteady });
      } catch (error) {
        operation.failed(error); // no answer of ours: something stands between us and Redis
      }
    });
  }

  fail(error: unknown): void {
    for (const operation of this.operations) {
      operation.failed(error);
    }
  }
}
