import { momentOf, type Clock, type Moment, type Timer } from "../../../runtime/clock.ts";
import type { Connection } from "../clients/connection.ts";
import { isOfReplica, timeoutError } from "./errors.ts";
import { lateMs } from "./poll-delays.ts";
import { joined, type Operation } from "../protocol/operation.ts";
import type { Script } from "../protocol/script.ts";
import type { Question, Silence } from "./responsiveness.ts";

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
  readonly isVoter: boolean;
}

const largestBatch = 128;
/**
 * So many calls share what is to be answered, so that the server works on some while we read the answers of others. Not those of a
 * quorum's node: we have the others' answers to read meanwhile.
 */
const parts = 2;
const smallestPart = 2;
/** More calls under way than this gain nothing: what comes meanwhile is gathered into the next. */
const mostCalls = 8;
/** A quorum's node that answers others is waited for this many times as long: calls stand behind each other. */
const longestBacklog = 10;

/** Who is told of the node, beside the operations. */
interface BatchListener {
  replied(header: Header, sent: Moment, received: number, isSteady: boolean): void;
  /** It did not answer in time, or as a replica does. */
  suspected(): void;
}

/** Operations of one turn of the event loop to one node travel together, in as few script calls as pay, each apart from the errors of the others. */
export class Batcher {
  readonly #connection: Pick<Connection, "run">;
  readonly #clock: Clock;
  readonly #script: Script;
  readonly #keys: readonly string[];
  readonly #args: readonly string[];
  readonly #timeoutMs: number;
  readonly #isVoter: boolean;
  readonly #listener: BatchListener;
  readonly #silence: Silence;
  #waiting: Operation[] = [];
  #isScheduled = false;
  #calls = 0;
  /** Operations of all these calls. */
  #underWay = 0;
  #epoch = 0;
  #heardAt = -Infinity;

  constructor(
    connection: Pick<Connection, "run">,
    clock: Clock,
    settings: BatcherSettings,
    listener: BatchListener,
    silence: Silence,
  ) {
    this.#connection = connection;
    this.#clock = clock;
    const { script, keys, args, timeoutMs, isVoter } = settings;
    this.#script = script;
    this.#keys = keys;
    this.#args = args;
    this.#timeoutMs = timeoutMs;
    this.#isVoter = isVoter;
    this.#listener = listener;
    this.#silence = silence;
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
    if (this.#silence.isOn) {
      this.#refuse();
      return;
    }
    const waiting = this.#waiting.length;
    const even = (this.#underWay + waiting) / (this.#isVoter ? 1 : parts);
    const share = Math.ceil(Math.max(smallestPart, even, waiting / (mostCalls - this.#calls)));
    while (this.#waiting.length > 0 && this.#calls < mostCalls) {
      this.#call(this.#waiting.splice(0, Math.min(share, largestBatch)));
    }
  };

  #call(operations: readonly Operation[]): void {
    const keys = this.#keys.slice();
    for (const operation of operations) {
      keys.push(...operation.keys);
    }
    const [lone] = operations;
    // A lone operation's arguments need no JSON. A quorum's node always gets JSON, which most nodes share.
    const args =
      lone !== undefined && operations.length === 1 && !this.#isVoter
        ? [...this.#args, ...lone.args]
        : [...this.#args, joined(operations)];
    const call = new Call(operations, momentOf(this.#clock), this.#epoch, this.#silence.ask());
    this.#calls += 1;
    this.#underWay += operations.length;
    this.#watch(call, this.#timeoutMs);
    this.#connection.run(this.#script, keys, args).then(
      (answers) => {
        this.#done(call);
        this.#heardAt = this.#clock.now();
        this.#answer(call, answers);
        this.#silence.answered(call.question);
      },
      (error: unknown) => {
        this.#done(call);
        this.#silence.failed(call.question, error);
        if (isOfReplica(error)) {
          this.#listener.suspected();
        }
        call.fail(error);
      },
    );
  }

  #answer(call: Call, answers: unknown): void {
    let header: Header;
    let values: readonly unknown[];
    try {
      [header, values] = this.#read(answers);
    } catch (error) {
      call.fail(error); // no answer of ours: something stands between us and Redis
      return;
    }
    const isSteady = call.epoch === this.#epoch;
    this.#listener.replied(header, call.sent, this.#clock.now(), isSteady);
    call.answer(values, header, isSteady);
  }

  #watch(call: Call, timeoutMs: number): void {
    const dueAt = this.#clock.now() + timeoutMs;
    call.timer = this.#clock.setTimer(() => {
      if (this.#clock.now() - dueAt > lateMs && !call.isGraced) {
        call.isGraced = true; // once: a busy process may always be late
        this.#watch(call, lateMs); // the reply may have arrived unread
        return;
      }
      const leftMs = this.#patienceMs(call);
      if (leftMs > 0) {
        this.#watch(call, leftMs);
        return;
      }
      this.#done(call);
      this.#listener.suspected();
      this.#silence.gaveUp(call.question);
      call.fail(timeoutError(this.#timeoutMs));
    }, timeoutMs);
  }

  /** How much longer a call to a quorum's node may take while the node answers earlier calls. */
  #patienceMs(call: Call): number {
    const now = this.#clock.now();
    const isPatient = this.#isVoter && now - call.sent.now < this.#timeoutMs * longestBacklog;
    return isPatient ? this.#heardAt + this.#timeoutMs - now : 0;
  }

  /** Nothing is sent: many requests would pile up before a server that does not answer. */
  #refuse(): void {
    const refused = this.#waiting.splice(0);
    const error = this.#silence.refuse();
    for (const operation of refused) {
      operation.failed(error);
    }
  }

  /** Throws where it is no answer of the script. */
  #read(answers: unknown): [Header, readonly unknown[]] {
    const [told, ...values] = answers as [unknown, ...unknown[]];
    const [micros, runId = "", uptime = 0] = this.#isVoter ? (told as unknown[]) : [told];
    const serverMicros = Number(micros);
    if (!Number.isFinite(serverMicros)) {
      throw new Error("An answer that is not the script's");
    }
    return [{ serverMicros, runId: String(runId), uptimeMs: Number(uptime) * 1000 }, values];
  }

  #done(call: Call): void {
    this.#clock.clearTimer(call.timer);
    if (call.isUnderWay) {
      call.isUnderWay = false;
      this.#calls -= 1;
      this.#underWay -= call.operations.length;
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
  readonly question: Question;
  isUnderWay = true;
  isGraced = false;
  timer: Timer;

  constructor(operations: readonly Operation[], sent: Moment, epoch: number, question: Question) {
    this.operations = operations;
    this.sent = sent;
    this.epoch = epoch;
    this.question = question;
  }

  answer(values: readonly unknown[], { serverMicros, runId }: Header, isSteady: boolean): void {
    this.operations.forEach((operation, index) => {
      try {
        operation.answered({ value: values[index], sent: this.sent, serverMicros, isSteady, runId });
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
