import { instantNow, type Clock, type Instant, type Timer } from "../../../runtime/clock.ts";
import type { Connection } from "../clients/connection.ts";
import { isReadOnlyError, timeoutError } from "./errors.ts";
import { lateTimerMs } from "./poll-delays.ts";
import { encode, type Operation } from "../protocol/operation.ts";
import type { Script } from "../protocol/script.ts";
import type { CallNumber, Responsiveness } from "./responsiveness.ts";

/** What stands before the answers of a call. */
export interface Header {
  readonly serverMicros: number;
  /** Of a quorum's node; else "" and 0. */
  readonly runId: string;
  readonly uptimeMs: number;
}

export interface BatcherSettings {
  readonly script: Script;
  /** What stands before the keys and the arguments of all operations. */
  readonly keys: readonly string[];
  readonly args: readonly string[];
  /** How long a call may take before its operations are told that no answer came. */
  readonly timeoutMs: number;
  /** A node of a quorum. */
  readonly withRunId: boolean;
}

const maxBatch = 128;
/**
 * So many calls share what is to be answered, so that the server works on some while we read the answers of others. Not those of a
 * quorum's node: we have the others' answers to read meanwhile.
 */
const callsInFlight = 2;
const minCallSize = 2;
/** More calls under way than this gain nothing: what comes meanwhile is gathered into the next. */
const maxCalls = 8;
/** A quorum's node that answers others is waited for this many times as long: calls stand behind each other. */
const maxBacklogFactor = 10;

/** Who is told of the node, beside the operations. */
export interface BatchListener {
  replied(header: Header, sent: Instant, received: number, sameConnection: boolean): void;
  /** It did not answer in time, or as a replica does. */
  unresponsive(): void;
}

/** Operations of one turn of the event loop to one node travel together, in as few script calls as pay, each apart from the errors of the others. */
export class Batcher {
  readonly #connection: Pick<Connection, "run">;
  readonly #clock: Clock;
  readonly #script: Script;
  readonly #keys: readonly string[];
  readonly #args: readonly string[];
  readonly #timeoutMs: number;
  readonly #withRunId: boolean;
  readonly #listener: BatchListener;
  readonly #responsiveness: Responsiveness;
  #waiting: Operation[] = [];
  #isScheduled = false;
  #calls = 0;
  /** Operations of all these calls. */
  #inFlight = 0;
  #epoch = 0;
  #repliedAt = -Infinity;

  constructor(
    connection: Pick<Connection, "run">,
    clock: Clock,
    settings: BatcherSettings,
    listener: BatchListener,
    responsiveness: Responsiveness,
  ) {
    this.#connection = connection;
    this.#clock = clock;
    const { script, keys, args, timeoutMs, withRunId } = settings;
    this.#script = script;
    this.#keys = keys;
    this.#args = args;
    this.#timeoutMs = timeoutMs;
    this.#withRunId = withRunId;
    this.#listener = listener;
    this.#responsiveness = responsiveness;
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
    if (!this.#isScheduled && this.#calls < maxCalls) {
      this.#isScheduled = true;
      process.nextTick(this.#flush); // after all promises of this turn have run
    }
  }

  readonly #flush = (): void => {
    this.#isScheduled = false;
    if (this.#responsiveness.isUnresponsive) {
      this.#refuse();
      return;
    }
    const waiting = this.#waiting.length;
    const even = (this.#inFlight + waiting) / (this.#withRunId ? 1 : callsInFlight);
    const size = Math.ceil(Math.max(minCallSize, even, waiting / (maxCalls - this.#calls)));
    while (this.#waiting.length > 0 && this.#calls < maxCalls) {
      this.#send(this.#waiting.splice(0, Math.min(size, maxBatch)));
    }
  };

  #send(operations: readonly Operation[]): void {
    const keys = this.#keys.slice();
    for (const operation of operations) {
      keys.push(...operation.keys);
    }
    const [single] = operations;
    // A lone operation's arguments need no JSON. A quorum's node always gets JSON, which most nodes share.
    const args =
      single !== undefined && operations.length === 1 && !this.#withRunId
        ? [...this.#args, ...single.args]
        : [...this.#args, encode(operations)];
    const call = new Call(operations, instantNow(this.#clock), this.#epoch, this.#responsiveness.callSent());
    this.#calls += 1;
    this.#inFlight += operations.length;
    this.#startTimeout(call, this.#timeoutMs);
    this.#connection.run(this.#script, keys, args).then(
      (answers) => {
        this.#callEnded(call);
        this.#repliedAt = this.#clock.now();
        this.#handleReply(call, answers);
        this.#responsiveness.callAnswered(call.callNumber);
      },
      (error: unknown) => {
        this.#callEnded(call);
        this.#responsiveness.callFailed(call.callNumber, error);
        if (isReadOnlyError(error)) {
          this.#listener.unresponsive();
        }
        call.fail(error);
      },
    );
  }

  #handleReply(call: Call, answers: unknown): void {
    let header: Header;
    let values: readonly unknown[];
    try {
      [header, values] = this.#parseReply(answers);
    } catch (error) {
      call.fail(error); // no answer of ours: something stands between us and Redis
      return;
    }
    const sameConnection = call.epoch === this.#epoch;
    this.#listener.replied(header, call.sent, this.#clock.now(), sameConnection);
    call.answer(values, header, sameConnection);
  }

  #startTimeout(call: Call, timeoutMs: number): void {
    const dueAt = this.#clock.now() + timeoutMs;
    call.timer = this.#clock.setTimer(() => {
      if (this.#clock.now() - dueAt > lateTimerMs && !call.hasGracePeriod) {
        call.hasGracePeriod = true; // once: a busy process may always be late
        this.#startTimeout(call, lateTimerMs); // the reply may have arrived unread
        return;
      }
      const leftMs = this.#extraWaitMs(call);
      if (leftMs > 0) {
        this.#startTimeout(call, leftMs);
        return;
      }
      this.#callEnded(call);
      this.#listener.unresponsive();
      this.#responsiveness.callTimedOut(call.callNumber);
      call.fail(timeoutError(this.#timeoutMs));
    }, timeoutMs);
  }

  /** How much longer a call to a quorum's node may take while the node answers earlier calls. */
  #extraWaitMs(call: Call): number {
    const now = this.#clock.now();
    const isPatient = this.#withRunId && now - call.sent.now < this.#timeoutMs * maxBacklogFactor;
    return isPatient ? this.#repliedAt + this.#timeoutMs - now : 0;
  }

  /** Nothing is sent: many requests would pile up before a server that does not answer. */
  #refuse(): void {
    const refused = this.#waiting.splice(0);
    const error = this.#responsiveness.rejection();
    for (const operation of refused) {
      operation.failed(error);
    }
  }

  /** Throws where it is no answer of the script. */
  #parseReply(answers: unknown): [Header, readonly unknown[]] {
    const [header, ...values] = answers as [unknown, ...unknown[]];
    const [micros, runId = "", uptime = 0] = this.#withRunId ? (header as unknown[]) : [header];
    const serverMicros = Number(micros);
    if (!Number.isFinite(serverMicros)) {
      throw new Error("An answer that is not the script's");
    }
    return [{ serverMicros, runId: String(runId), uptimeMs: Number(uptime) * 1000 }, values];
  }

  #callEnded(call: Call): void {
    this.#clock.clearTimer(call.timer);
    if (call.isInFlight) {
      call.isInFlight = false;
      this.#calls -= 1;
      this.#inFlight -= call.operations.length;
      if (this.#waiting.length > 0) {
        this.#schedule();
      }
    }
  }
}

class Call {
  readonly operations: readonly Operation[];
  readonly sent: Instant;
  readonly epoch: number;
  readonly callNumber: CallNumber;
  isInFlight = true;
  hasGracePeriod = false;
  timer: Timer;

  constructor(operations: readonly Operation[], sent: Instant, epoch: number, callNumber: CallNumber) {
    this.operations = operations;
    this.sent = sent;
    this.epoch = epoch;
    this.callNumber = callNumber;
  }

  answer(values: readonly unknown[], { serverMicros, runId }: Header, sameConnection: boolean): void {
    this.operations.forEach((operation, index) => {
      try {
        operation.answered({ value: values[index], sent: this.sent, serverMicros, sameConnection, runId });
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
