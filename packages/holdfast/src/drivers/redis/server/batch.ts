import { maxSkewWaitMs } from "../options.ts";
import { executeQuorumScript, executeSingleScript } from "../protocol/scripts.generated.ts";
import { afterPromises, type Clock, type Instant, instantNow, type Timer } from "../../../runtime/clock.ts";
import type { Connection } from "../clients/connection.ts";
import { isReadOnlyError, noScriptReply, timeoutError } from "./errors.ts";
import { lateTimerMs } from "./poll-delays.ts";
import { encode, encodeShared, type Operation } from "../protocol/operation.ts";
import type { Script } from "../protocol/script.ts";
import type { CallNumber, Responsiveness } from "./bounded-calls.ts";

interface QuorumNodeLimits {
  readonly nodeTimeoutMs: number;
  readonly maxClockDifferenceMs?: number | undefined;
  readonly retentionMs?: number | undefined;
  readonly queueBound: number;
}

/** Batches for a server that decides alone. */
export function singleServerBatches(counter: string, queueBound: number, timeoutMs: number): BatcherSettings {
  return {
    script: executeSingleScript,
    keys: [counter],
    args: [String(queueBound)],
    timeoutMs,
    isQuorumNode: false,
  };
}

/** Batches for a node of a quorum. */
export function quorumNodeBatches(limits: QuorumNodeLimits): BatcherSettings {
  const { nodeTimeoutMs, maxClockDifferenceMs = 0, retentionMs = 0, queueBound } = limits;
  return {
    script: executeQuorumScript,
    keys: [],
    args: [String(retentionMs), String(queueBound), String(maxSkewWaitMs(maxClockDifferenceMs))],
    timeoutMs: nodeTimeoutMs,
    isQuorumNode: true,
  };
}

/** The first element of a reply, before the replies of the operations. */
export interface Header {
  readonly serverMicros: number;
  /** The run of a node of a quorum. Empty for a single server. */
  readonly runId: string;
  /** The uptime of a node of a quorum. 0 for a single server. */
  readonly uptimeMs: number;
}

interface BatcherSettings {
  readonly script: Script;
  /** The keys before the keys of the operations. */
  readonly keys: readonly string[];
  /** The arguments before the arguments of the operations. */
  readonly args: readonly string[];
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
  readonly #keys: readonly string[];
  readonly #args: readonly string[];
  readonly #timeoutMs: number;
  readonly #isQuorumNode: boolean;
  readonly #listener: BatchListener;
  readonly #responsiveness: Responsiveness;
  #waiting: Operation[] = [];
  #isScheduled = false;
  #calls = 0;
  /** The number of operations in these calls. */
  #inFlight = 0;
  /** Counts the lost connections. */
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
    const { script, keys, args, timeoutMs, isQuorumNode } = settings;
    this.#script = script;
    this.#keys = keys;
    this.#args = args;
    this.#timeoutMs = timeoutMs;
    this.#isQuorumNode = isQuorumNode;
    this.#listener = listener;
    this.#responsiveness = responsiveness;
  }

  perform(operation: Operation): void {
    this.#waiting.push(operation);
    this.#schedule();
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
    while (this.#waiting.length > 0 && this.#calls < maxCalls) {
      this.#send(this.#waiting.splice(0, Math.min(size, maxBatch)));
    }
  };

  #send(operations: readonly Operation[]): void {
    const keys = this.#keys.slice();
    for (const operation of operations) {
      keys.push(...operation.keys);
    }
    const auditKey = operations.find((operation) => operation.auditKey !== undefined)?.auditKey;
    if (auditKey !== undefined) {
      keys.push(auditKey);
    }
    const [single] = operations;
    // A single operation needs no JSON. For a quorum the JSON is always written, because the nodes share one encoded text.
    const args =
      single !== undefined && operations.length === 1 && !this.#isQuorumNode
        ? [...this.#args, ...single.args]
        : [...this.#args, this.#isQuorumNode ? encodeShared(operations) : encode(operations)];
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
      call.fail(error); // not a reply of the script, but of a program between the client and Redis
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
        call.hasGracePeriod = true; // only once, because a busy process may always be late
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
  #parseReply(answers: unknown): [Header, readonly unknown[]] {
    if (!Array.isArray(answers)) {
      throw noScriptReply(answers);
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
