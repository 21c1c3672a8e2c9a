import type { Clock, Timer } from "../../../runtime/clock.ts";
import { tell } from "../../../diagnostics.ts";
import { EngineError, LockError, QuorumError, type NodeVote } from "../../../errors.ts";
import { pause } from "../../../runtime/timeout.ts";
import { isTransient, messageOf, outcomeOf } from "../server/errors.ts";
import { majorityOf, medianOf } from "./majority.ts";
import { latestTime } from "../server/server.ts";
import type { ClockReading } from "./clock-reading.ts";
import type { Quarantine } from "./restart-guard.ts";
import type { Voter } from "./quorum-node.ts";

/**
 * So far ahead of the nodes' time a candidate may be. A node keeps it within a second of its own: each would give another number to
 * one that is further ahead, as after a node's clock was wrong.
 */
const mostLeadMicros = 500_000;
/** How much longer than for a majority the others are waited for at the first meeting: a few times as long. */
const graceTimes = 5;
const longestGraceMs = 50;
/** An estimate that may be wrong by more says nothing of who has the same time. */
const vagueMs = 500;
/** By how much the nodes' time may move without that what was written by it is wrong, beside the drift of the clocks. */
const mostMoveMs = 50;
const mostDriftRate = 0.01;

const unknownTime: Quarantine = {
  reason: "too few nodes are known to have its time",
  remainingMs: null,
  isMomentary: true,
};
const clockIsOff: Quarantine = { reason: "its clock is off", remainingMs: null, isMomentary: false };

interface ElectorateOptions {
  readonly maxClockDifferenceMs: number;
  readonly commandTimeoutMs: number;
}

/** The nodes of a quorum: the time that they have in common, and which of them may vote. */
export class Electorate {
  readonly voters: readonly Voter[];
  readonly majority: number;
  /** A node whose time differs from that of the others by more does not vote. */
  readonly maxClockDifferenceMs: number;
  readonly #clock: Clock;
  readonly #commandTimeoutMs: number;
  #lastTicket = 0;
  #lastCandidate = 0;
  /** What our candidates are ahead of `clock.now()`, in microseconds. */
  #lead = -Infinity;
  /** By node: its clock was told to be off. */
  readonly #isOff: boolean[] = [];
  /** By node, as they were when the median was taken last. */
  readonly #offsets: (number | undefined)[] = [];
  #median: number | undefined;
  /** When it was found, on the scale of `clock.now()`. */
  #medianAt = 0;
  #era = 0;
  #twins: readonly [Voter, Voter] | undefined;
  #isReady = false;
  #readying: Promise<void> | undefined;

  constructor(clock: Clock, voters: readonly Voter[], options: ElectorateOptions) {
    const { maxClockDifferenceMs, commandTimeoutMs } = options;
    this.#clock = clock;
    this.#commandTimeoutMs = commandTimeoutMs;
    this.voters = voters;
    this.maxClockDifferenceMs = maxClockDifferenceMs;
    this.majority = majorityOf(voters.length);
  }

  /** The time of a majority is known. After a sleep the next answers correct it. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Another one: answers have shown that the nodes' time was wrong, and with it the places and deadlines that were written by it. */
  get era(): number {
    this.#medianOffset();
    return this.#era;
  }

  /**
   * Meets a majority of the nodes; the others are met meanwhile. Rejects with a `QuorumError` where too few answer, with
   * `unsupported` where two of them are the same server; the next call asks again.
   */
  ready(): Promise<void> {
    this.#readying ??= this.#meet().catch((error: unknown) => {
      this.#readying = undefined;
      throw error;
    });
    return this.#readying;
  }

  /** A place in the queues for who arrives now: the nodes' median time in microseconds, strictly increasing here. */
  ticket(): number {
    const now = this.#clock.now() * 1000 + (this.#medianOffset() ?? 0);
    this.#lastTicket = Math.max(this.#lastTicket + 1, Math.floor(now));
    return this.#lastTicket;
  }

  now(): number {
    return this.#clock.now();
  }

  pause(ms: number): Promise<void> {
    return pause(this.#clock, ms);
  }

  /** The nodes' median time, in microseconds. */
  micros(): number {
    return Math.floor(this.#clock.now() * 1000 + (this.#medianOffset() ?? 0));
  }

  /**
   * The fencing number that all nodes are asked to give. It follows the largest number that any of them told, as a clock that
   * stayed behind would be answered by as many numbers as there are nodes.
   */
  candidate(): string {
    const now = this.#clock.now() * 1000;
    if (this.#lead === -Infinity) {
      this.#lead = this.#medianOffset() ?? 0;
    }
    const lead = Math.min(this.#lead, (this.#medianOffset() ?? this.#lead) + mostLeadMicros);
    this.#lastCandidate = Math.max(this.#lastCandidate + 1, Math.floor(now + lead));
    return String(this.#lastCandidate);
  }

  /** The latest time of a node, ms, at which an operation that is sent now may take effect. */
  latestExecution(): string {
    return latestTime(Math.floor(this.micros() / 1000), this.#commandTimeoutMs);
  }

  follow(number: number): void {
    this.#lead = Math.max(this.#lead, number - this.#clock.now() * 1000);
  }

  /**
   * Why a node does not vote now; undefined: it does.
   * @param reading its clock, as the answer or message says that is to count
   */
  quarantineOf(voter: Voter, reading?: ClockReading): Quarantine | undefined {
    return this.#standingOf(voter) ?? this.#untimely(voter, reading ?? estimateOf(voter));
  }

  /** Why a vote does not count, and will not soon; undefined: it does, or may with the node's next answer. */
  exclusionOf(voter: Voter, reading: ClockReading): Quarantine | undefined {
    return lasting(this.quarantineOf(voter, reading));
  }

  /** Why a node is not asked at all. One whose clock is off is: each answer tells its time. */
  whyNotAsked(voter: Voter): Quarantine | undefined {
    return lasting(this.#standingOf(voter));
  }

  #standingOf(voter: Voter): Quarantine | undefined {
    return this.#twins?.includes(voter) === true
      ? { reason: "two of the nodes are the same server", remainingMs: null, isMomentary: false }
      : voter.guard.quarantine;
  }

  /**
   * A node votes where a majority, with itself, has the same time. Of two majorities that both count it, the other nodes bound then how
   * far its clock can have been set between the two votes. What delays hide of its own clock makes up for itself: a vote is valid from
   * the earliest moment, and waits from the latest.
   */
  #untimely(voter: Voter, reading: ClockReading | undefined): Quarantine | undefined {
    if (reading === undefined) {
      return unknownTime;
    } else if (reading.wasInTime) {
      return undefined;
    }
    let near = 1;
    let apart = 0;
    for (const other of this.voters) {
      const estimate = other === voter ? undefined : estimateOf(other);
      if (estimate) {
        const aheadMs = reading.leastMs - estimate.leastMs;
        const behindMs = estimate.mostMs - reading.mostMs;
        near += Math.max(aheadMs, behindMs) <= this.maxClockDifferenceMs ? 1 : 0;
        const certainMs = Math.max(reading.leastMs - estimate.mostMs, estimate.leastMs - reading.mostMs);
        apart += certainMs > this.maxClockDifferenceMs ? 1 : 0;
      }
    }
    reading.wasInTime = near >= this.majority;
    const isOff = apart >= this.majority;
    this.#noteClock(voter, isOff);
    return reading.wasInTime ? undefined : isOff ? clockIsOff : unknownTime;
  }

  #noteClock(voter: Voter, isOff: boolean): void {
    const wasOff = this.#isOff[voter.index] === true;
    this.#isOff[voter.index] = isOff;
    if (isOff && !wasOff) {
      const { offsetMicros } = voter.node.time;
      const clockOffsetMs = ((offsetMicros ?? 0) - (this.#medianOffset() ?? 0)) / 1000;
      tell("node", () => ({ node: voter.name, event: "clock-off", clockOffsetMs }));
    }
  }

  /** When enough nodes may vote again, as far as it is known; undefined: they may, or it is not. */
  votesAgainInMs(): number | undefined {
    const waits = this.voters.map((voter) => {
      const quarantine = this.quarantineOf(voter);
      if (!voter.isReady || voter.node.isSilent) {
        return Infinity; // nobody knows when it answers
      }
      return quarantine === undefined ? 0 : (quarantine.remainingMs ?? Infinity);
    });
    const wait = waits.sort((a, b) => a - b)[this.majority - 1] ?? 0;
    return wait > 0 && wait < Infinity ? Math.ceil(wait) : undefined;
  }

  /** After each answer of a node. */
  answered(isNewRun: boolean): void {
    if (isNewRun) {
      this.#twins = this.#findTwins();
    }
  }

  /** Two endpoints that lead to one server would let it vote twice. */
  refuseTwins(): void {
    if (this.#twins) {
      const [one, other] = this.#twins;
      throw new LockError(`The nodes ${one.name} and ${other.name} are the same server`, {
        code: "unsupported",
      });
    }
  }

  async #meet(): Promise<void> {
    const failures = new Map<Voter, unknown>();
    const begun = this.#clock.now();
    let timer: Timer;
    await new Promise<void>((resolve, reject) => {
      let met = 0;
      const judge = (): void => {
        if (failures.size > this.voters.length - this.majority) {
          reject(this.#unmet(failures));
        } else if (met + failures.size === this.voters.length) {
          resolve();
        } else if (met === this.majority && timer === undefined) {
          // The median of few may be far from that of all, and with it our first places in the queues.
          const graceMs = Math.min(longestGraceMs, (this.#clock.now() - begun) * graceTimes);
          timer = this.#clock.setTimer(resolve, graceMs, true);
        }
      };
      for (const voter of this.voters) {
        voter.meet().then(
          () => {
            met += 1;
            judge();
          },
          (error: unknown) => {
            failures.set(voter, error);
            judge();
          },
        );
      }
    }).finally(() => this.#clock.clearTimer(timer));
    this.refuseTwins();
    this.#isReady = true;
  }

  #unmet(failures: ReadonlyMap<Voter, unknown>): QuorumError {
    const votes = this.voters.map((voter): NodeVote => {
      const error = failures.get(voter);
      const reason = error === undefined ? "it was not asked, as too few others can be" : messageOf(error);
      const vote = error instanceof EngineError ? "timeout" : "error";
      return { node: voter.name, vote, latencyMs: null, reason };
    });
    const causes = [...failures.values()];
    return new QuorumError({
      votes,
      outcome: causes.every((error) => outcomeOf(error) === "none") ? "none" : "unknown",
      retryable: causes.some(isTransient),
      cause: causes[0],
    });
  }

  /** Undefined while the time of too few is known to judge. Asked for much more often than an offset changes. */
  #medianOffset(): number | undefined {
    let isChanged = false;
    for (const { index, node } of this.voters) {
      const { offsetMicros } = node.time;
      isChanged ||= this.#offsets[index] !== offsetMicros;
      this.#offsets[index] = offsetMicros;
    }
    if (isChanged) {
      const known = this.#offsets.filter((offset) => offset !== undefined);
      this.#setMedian(known.length < this.majority ? undefined : medianOf(known));
    }
    return this.#median;
  }

  #setMedian(median: number | undefined): void {
    const now = this.#clock.now();
    const movedMs = Math.abs((median ?? 0) - (this.#median ?? median ?? 0)) / 1000;
    if (movedMs > mostMoveMs + (now - this.#medianAt) * mostDriftRate) {
      this.#era += 1;
      this.#lastTicket = 0; // places of the wrong time may all be ahead of the right one
    }
    this.#median = median;
    this.#medianAt = now;
  }

  #findTwins(): readonly [Voter, Voter] | undefined {
    for (const one of this.voters) {
      const other = this.voters.find(
        ({ index, guard }) =>
          index > one.index && guard.runId !== undefined && guard.runId === one.guard.runId,
      );
      if (other) {
        return [one, other];
      }
    }
    return undefined;
  }
}

function lasting(quarantine: Quarantine | undefined): Quarantine | undefined {
  return quarantine?.isMomentary === true ? undefined : quarantine;
}

/** What is known of a node's clock; undefined: too little. */
function estimateOf({ node }: Voter): ClockReading | undefined {
  const { offsetMicros, errorMs } = node.time;
  if (offsetMicros === undefined || errorMs > vagueMs) {
    return undefined;
  }
  const atMs = offsetMicros / 1000;
  return { leastMs: atMs - errorMs, mostMs: atMs + errorMs, wasInTime: false };
}
