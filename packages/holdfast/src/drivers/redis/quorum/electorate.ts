import type { Clock, Timer } from "../../../clock.ts";
import { tell } from "../../../diagnostics.ts";
import { EngineError, LockError, QuorumError, type NodeVote } from "../../../errors.ts";
import { isTransient, messageOf, outcomeOf } from "../failures.ts";
import { majorityOf, medianOf } from "./agreement.ts";
import type { Quarantine } from "./restart-guard.ts";
import type { Voter } from "./voter.ts";

/** A node whose clock differs by more does not vote. */
export const mostApartMs = 1_000;
/**
 * So far ahead of the nodes' time a candidate may be. A node keeps it within a second of its own: each would give another number to
 * one that is further ahead, as after a node's clock was wrong.
 */
const mostLeadMicros = 500_000;
/** How much longer than for a majority the others are waited for at the first meeting: a few times as long. */
const graceTimes = 5;
const longestGraceMs = 50;
/** An estimate that may be wrong by more says nothing of who agrees with it. */
const vagueMs = 500;

/** The nodes of a quorum: the time that they have in common, and which of them may vote. */
export class Electorate {
  readonly voters: readonly Voter[];
  readonly majority: number;
  readonly #clock: Clock;
  #lastTicket = 0;
  #lastCandidate = 0;
  /** What our candidates are ahead of `clock.now()`, in microseconds. */
  #lead = -Infinity;
  readonly #isInTime: boolean[] = [];
  /** By node: how often its clock had been set when it was compared last. */
  readonly #timesSet: number[] = [];
  /** By node, as they were when the median was taken last. */
  readonly #offsets: (number | undefined)[] = [];
  #median: number | undefined;
  #twins: readonly [Voter, Voter] | undefined;
  #isReady = false;
  #readying: Promise<void> | undefined;

  constructor(clock: Clock, voters: readonly Voter[]) {
    this.#clock = clock;
    this.voters = voters;
    this.majority = majorityOf(voters.length);
  }

  /** The time of a majority is known. */
  get isReady(): boolean {
    return this.#isReady;
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
    return new Promise((resolve) => {
      this.#clock.setTimer(resolve, ms, true);
    });
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

  follow(number: number): void {
    this.#lead = Math.max(this.#lead, number - this.#clock.now() * 1000);
  }

  /** Why a node does not vote now; undefined: it does. */
  quarantineOf(voter: Voter): Quarantine | undefined {
    if (this.#twins?.includes(voter) === true) {
      return { reason: "two of the nodes are the same server", remainingMs: null, isMomentary: false };
    }
    return (
      voter.guard.quarantine ??
      (this.#isInTime[voter.index] === true
        ? undefined
        : { reason: "too few nodes are known to have its time", remainingMs: null, isMomentary: true })
    );
  }

  /** Why a node does not vote, and will not soon; undefined: it does, or may with its next answer. */
  exclusionOf(voter: Voter): Quarantine | undefined {
    const quarantine = this.quarantineOf(voter);
    return quarantine?.isMomentary === true ? undefined : quarantine;
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
  answered(voter: Voter, isNewRun: boolean): void {
    if (isNewRun) {
      this.#twins = this.#findTwins();
    }
    this.#compareClocks();
  }

  /**
   * A node votes while a majority, with itself, may have the same time within a second. One that is certainly apart from a
   * majority is kept out for as long as what it let expire early may be valid elsewhere; and so is one whose clock was set: it is wrong
   * now, or was before.
   */
  #compareClocks(): void {
    const clocks = this.voters.map(({ node }) => ({
      atMs: (node.time.offsetMicros ?? 0) / 1000,
      errorMs: node.time.errorMs,
    }));
    for (const voter of this.voters) {
      const own = clocks[voter.index] as (typeof clocks)[number];
      let near = 0;
      let apart = 0;
      for (const { atMs, errorMs } of clocks) {
        const isApart = Math.abs(atMs - own.atMs) - errorMs - own.errorMs > mostApartMs;
        apart += isApart ? 1 : 0;
        near += !isApart && errorMs < vagueMs && own.errorMs < vagueMs ? 1 : 0;
      }
      this.#isInTime[voter.index] = near >= this.majority;
      const { timesSet } = voter.node.time;
      const wasSet = timesSet !== (this.#timesSet[voter.index] ?? 0);
      this.#timesSet[voter.index] = timesSet;
      if ((wasSet || apart >= this.majority) && voter.guard.clockIsOff()) {
        tell("node", () => ({
          node: voter.name,
          event: "clock-off",
          clockOffsetMs: own.atMs - (this.#medianOffset() ?? 0) / 1000,
        }));
      }
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
    }).finally(() => {
      this.#clock.clearTimer(timer);
    });
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
      this.#median = known.length < this.majority ? undefined : medianOf(known);
    }
    return this.#median;
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
