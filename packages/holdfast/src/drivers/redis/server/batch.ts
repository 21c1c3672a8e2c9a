import { afterPromises, type Clock, type Instant, instantNow } from "../../../runtime/clock.ts";
import type { Connection } from "../clients/connection.ts";
import { isReadOnlyError, noScriptReply, timeoutError } from "./errors.ts";
import { lateTimerMs } from "./poll-delays.ts";
import type { CallText, Operation } from "../protocol/operation.ts";
import { type Scheduled, TimerQueue } from "../../../runtime/timer-queue.ts";
import type { Script } from "../protocol/script.ts";
import type { CallNumber, Responsiveness } from "./bounded-calls.ts";

/** The first element of a reply, before the replies of the operations. */
export interface Header {
  readonly serverMicros: number;
  /** The run of a node of a quorum. Empty for a single server. */
  readonly runId: string;
  /** The uptime of a node of a quorum. 0 for a single server. */
  readonly uptimeMs: number;
}

/** The calls of one kind of server. */
export interface BatcherSettings {
  readonly script: Script;
  readonly encode: (operations: readonly Operation[]) => CallText;
  /** How long a call may take before its operations fail. */
  readonly timeoutMs: number;
  /** The server is a node of a quorum, whose replies have its run ID and uptime. */
  readonly isQuorumNode: boolean;
}

const maxBatch = 128;
/**
 * The number of calls that share the waiting operations. The server executes one call while the client reads the reply of the other. A
 * node of a quorum gets one call, because the client reads the replies of the other nodes during the execution.
 */
const callsInFlight = 2;
const minCallSize = 2;
/** The most calls in flight for which operations are sent within the turn. Measured: 4 is best for 8 and 16 tasks. */
const earlyCalls = 4;
/** The most calls in flight. More calls would gain nothing, so later operations wait for the next call. */
const maxCalls = 8;
/** How many times `timeoutMs` a call to a node of a quorum may take while the node answers earlier calls of its queue. */
const maxBacklogFactor = 10;

/** Receives the events of the server, in addition to the operations. */
export interface BatchListener {
  replied(header: Header, sent: Instant, received: number, sameConnection: boolean): void;
  /** A call had no reply in time, or the reply of a replica. */
  unresponsive(): void;
}

/**
 * Collects the operations of one turn of the event loop for one server, and sends them in few script calls. The error of one operation
 * does not affect the others.
 */
export class Batcher {
  readonly #connection: Pick<Connection, "run">;
  readonly #clock: Clock;
  readonly #script: Script;
  readonly #encode: BatcherSettings["encode"];
  readonly #timeoutMs: number;
  readonly #isQuorumNode: boolean;
  readonly #listener: BatchListener;
  readonly #responsiveness: Responsiveness;
  readonly #timeouts: TimerQueue<Call>;
  #waiting: Operation[] = [];
  #isScheduled = false;
  #calls = 0;
  /** The number of operations in these calls. */
  #inFlight = 0;
  /** Counts the lost connections. */
  #epoch = 0;
  #repliedAt = -Infinity;
  /**
   * The number of waiting operations that are sent within the turn. The server then executes them while the client goes through the rest of
   * its replies. Without it all operations of a busy process would wait for each other, and client and server would work in turn.
   */
  #earlySize = Infinity;

  constructor(
    connection: Pick<Connection, "run">,
    clock: Clock,
    settings: BatcherSettings,
    listener: BatchListener,
    responsiveness: Responsiveness,
  ) {
    this.#connection = connection;
    this.#clock = clock;
    const { script, encode, timeoutMs, isQuorumNode } = settings;
    this.#script = script;
    this.#encode = encode;
    this.#timeoutMs = timeoutMs;
    this.#isQuorumNode = isQuorumNode;
    this.#listener = listener;
    this.#responsiveness = responsiveness;
    this.#timeouts = new TimerQueue(clock, (call) => this.#timedOut(call));
  }

  perform(operation: Operation): void {
    this.#waiting.push(operation);
    if (
      this.#waiting.length >= this.#earlySize &&
      this.#calls < earlyCalls &&
      !this.#responsiveness.isUnresponsive
    ) {
      this.#send(this.#waiting.splice(0));
    } else {
      this.#schedule();
    }
  }

  /** A connection was lost. Replies to earlier calls no longer count as replies on the same connection. */
  interrupted(): void {
    this.#epoch += 1;
  }

  #schedule(): void {
    if (!this.#isScheduled && this.#calls < maxCalls) {
      this.#isScheduled = true;
      afterPromises(this.#flush);
    }
  }

  readonly #flush = (): void => {
    this.#isScheduled = false;
    if (this.#responsiveness.isUnresponsive) {
      this.#refuse();
      return;
    }
    const waiting = this.#waiting.length;
    const even = (this.#inFlight + waiting) / (this.#isQuorumNode ? 1 : callsInFlight);
    const size = Math.ceil(Math.max(minCallSize, even, waiting / (maxCalls - this.#calls)));
    this.#earlySize = this.#isQuorumNode ? Infinity : Math.min(size, maxBatch);
    while (this.#waiting.length > 0 && this.#calls < maxCalls) {
      this.#send(this.#waiting.splice(0, Math.min(size, maxBatch)));
    }
  };

  #send(operations: readonly Operation[]): void {
    const { keys, args } = this.#encode(operations);
    const call = new Call(operations, instantNow(this.#clock), this.#epoch, this.#responsiveness.callSent());
    this.#calls += 1;
    this.#inFlight += operations.length;
    this.#timeouts.schedule(call, call.sent.now + this.#timeoutMs);
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
      [header, values] = this.#parseReply(call, answers);
    } catch (error) {
      call.fail(error); // not a reply of the script, but of a program between the client and Redis
      return;
    }
    const sameConnection = call.epoch === this.#epoch;
    this.#listener.replied(header, call.sent, this.#clock.now(), sameConnection);
    call.answer(values, header, sameConnection);
  }

  #timedOut(call: Call): void {
    const now = this.#clock.now();
    if (now - call.dueAt > lateTimerMs && !call.hasGracePeriod) {
      call.hasGracePeriod = true; // only once, because a busy process may always be late
      this.#timeouts.schedule(call, now + lateTimerMs); // the reply may have arrived unread
      return;
    }
    const leftMs = this.#extraWaitMs(call);
    if (leftMs > 0) {
      this.#timeouts.schedule(call, now + leftMs);
      return;
    }
    this.#callEnded(call);
    this.#listener.unresponsive();
    this.#responsiveness.callTimedOut(call.callNumber);
    call.fail(timeoutError(this.#timeoutMs));
  }

  /** How much longer a call to a node of a quorum may take while the node answers earlier calls. */
  #extraWaitMs(call: Call): number {
    const now = this.#clock.now();
    const isPatient = this.#isQuorumNode && now - call.sent.now < this.#timeoutMs * maxBacklogFactor;
    return isPatient ? this.#repliedAt + this.#timeoutMs - now : 0;
  }

  /** Rejects the waiting operations, because calls would accumulate for a server that does not answer. */
  #refuse(): void {
    const refused = this.#waiting.splice(0);
    const error = this.#responsiveness.rejection();
    for (const operation of refused) {
      operation.failed(error);
    }
  }

  /** Throws if the reply is not one of the script. */
  #parseReply({ operations }: Call, answers: unknown): [Header, readonly unknown[]] {
    if (!Array.isArray(answers)) {
      return parseLoneReply(operations, answers);
    }
    const [header, ...values] = answers as [unknown, ...unknown[]];
    const [micros, runId = "", uptime = 0] = this.#isQuorumNode ? (header as unknown[]) : [header];
    const serverMicros = Number(micros);
    if (!Number.isFinite(serverMicros)) {
      throw new Error("The reply is not one of the script");
    }
    return [{ serverMicros, runId: String(runId), uptimeMs: Number(uptime) * 1000 }, values];
  }

  #callEnded(call: Call): void {
    this.#timeouts.cancel(call);
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

/** Less is no time of a server, but perhaps the status that a mock returns for every command. */
const leastMicros = 1_000_000;

/** The reply to a lone form is the server's time: also the fencing number of an acquire, and the success of a release. */
function parseLoneReply([operation]: readonly Operation[], answer: unknown): [Header, readonly unknown[]] {
  const name = operation?.args[0];
  const micros = /^(number|string|bigint)$/.test(typeof answer) ? Number(answer) : NaN; // by the settings of the client library
  if (!(micros > leastMicros) || (name !== "acquire" && name !== "release")) {
    throw noScriptReply(answer);
  }
  return [{ serverMicros: micros, runId: "", uptimeMs: 0 }, [name === "acquire" ? micros : 1]];
}

class Call implements Scheduled {
  dueAt = 0;
  slot = -1;
  readonly operations: readonly Operation[];
  readonly sent: Instant;
  readonly epoch: number;
  readonly callNumber: CallNumber;
  isInFlight = true;
  hasGracePeriod = false;

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
        operation.failed(error); // not a reply of the script, but of a program between the client and Redis
      }
    });
  }

  fail(error: unknown): void {
    for (const operation of this.operations) {
      operation.failed(error);
    }
  }
}
