import type { Clock } from "../../../runtime/clock.ts";
import { LockError } from "../../../errors.ts";
import { pause } from "../../../runtime/timeout.ts";
import { majorityOf, medianOf } from "./majority.ts";
import { queueTtlMs } from "../server/pending-release.ts";
import { latestTime } from "../server/server-clock.ts";
import { ClockAgreement } from "./clock-agreement.ts";
import type { ClockReading } from "./clock-reading.ts";
import { connectMajority } from "./connect-majority.ts";
import type { Quarantine } from "./restart-guard.ts";
import type { QuorumNode } from "./quorum-node.ts";

/**
 * So far ahead of the nodes' time a candidate may be. A node keeps it within a second of its own: each would give another number to
 * one that is further ahead, as after a node's clock was wrong.
 */
const maxLeadMicros = 500_000;
/** By how much the nodes' time may move without that what was written by it is wrong, beside the drift of the clocks. */
const maxMoveMs = 50;
const maxDriftRate = 0.01;

interface NodeSetOptions {
  readonly maxClockDifferenceMs: number;
  readonly commandTimeoutMs: number;
}

/** The nodes of a quorum: the time that they have in common, and which of them may vote. */
export class NodeSet {
  readonly nodes: readonly QuorumNode[];
  readonly majority: number;
  /** A node whose time differs from that of the others by more does not vote. */
  readonly maxClockDifferenceMs: number;
  readonly #clock: Clock;
  readonly #commandTimeoutMs: number;
  readonly #clocks: ClockAgreement;
  #lastTicket = 0;
  #lastProposal = 0;
  /** What our candidates are ahead of `clock.now()`, in microseconds. */
  #lead = -Infinity;
  /** By node, as they were when the median was taken last. */
  readonly #offsets: (number | undefined)[] = [];
  #median: number | undefined;
  /** When it was found, on the scale of `clock.now()`. */
  #medianAt = 0;
  #era = 0;
  #duplicates: readonly [QuorumNode, QuorumNode] | undefined;
  #isReady = false;
  #readying: Promise<void> | undefined;

  constructor(clock: Clock, nodes: readonly QuorumNode[], options: NodeSetOptions) {
    const { maxClockDifferenceMs, commandTimeoutMs } = options;
    this.#clock = clock;
    this.#commandTimeoutMs = commandTimeoutMs;
    this.nodes = nodes;
    this.maxClockDifferenceMs = maxClockDifferenceMs;
    this.majority = majorityOf(nodes.length);
    this.#clocks = new ClockAgreement({
      nodes,
      majority: this.majority,
      maxClockDifferenceMs,
      medianOffset: () => this.#medianOffset(),
    });
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
    this.#readying ??= this.#connect().catch((error: unknown) => {
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
   * How much later than the client a node may see a queue entry's deadline pass, ms. The deadline is written `maxClockDifferenceMs`
   * late and by the median time, and the node compares it with its own clock, which may be behind. A queue without changes ends sooner.
   */
  lagMs({ server: { serverClock } }: QuorumNode): number {
    const behindMs = serverClock.isKnown ? (this.micros() - serverClock.micros()) / 1000 : 0;
    return Math.min(Math.max(0, behindMs) + this.maxClockDifferenceMs, queueTtlMs);
  }

  /**
   * The fencing number that all nodes are asked to give. It follows the largest number that any of them told, as a clock that
   * stayed behind would be answered by as many numbers as there are nodes.
   */
  nextProposal(): string {
    const now = this.#clock.now() * 1000;
    if (this.#lead === -Infinity) {
      this.#lead = this.#medianOffset() ?? 0;
    }
    const lead = Math.min(this.#lead, (this.#medianOffset() ?? this.#lead) + maxLeadMicros);
    this.#lastProposal = Math.max(this.#lastProposal + 1, Math.floor(now + lead));
    return String(this.#lastProposal);
  }

  /** The latest time of a node, ms, at which an operation that is sent now may take effect. */
  latestExecution(): string {
    return latestTime(Math.floor(this.micros() / 1000), this.#commandTimeoutMs);
  }

  raiseProposal(number: number): void {
    this.#lead = Math.max(this.#lead, number - this.#clock.now() * 1000);
  }

  /**
   * Why a node does not vote now; undefined: it does.
   * @param reading its clock, as the answer or message says that is to count
   */
  quarantineOf(node: QuorumNode, reading?: ClockReading): Quarantine | undefined {
    return this.#healthQuarantine(node) ?? this.#clocks.quarantineOf(node, reading);
  }

  /** Why a vote does not count, and will not soon; undefined: it does, or may with the node's next answer. */
  exclusionOf(node: QuorumNode, reading: ClockReading): Quarantine | undefined {
    return lasting(this.quarantineOf(node, reading));
  }

  /** Why a node is not asked at all. One whose clock is off is: each answer tells its time. */
  ineligibility(node: QuorumNode): Quarantine | undefined {
    return lasting(this.#healthQuarantine(node));
  }

  #healthQuarantine(node: QuorumNode): Quarantine | undefined {
    return this.#duplicates?.includes(node) === true
      ? { reason: "two of the nodes are the same server", remainingMs: null, isMomentary: false }
      : node.guard.quarantine;
  }

  /** When enough nodes may vote again, as far as it is known; undefined: they may, or it is not. */
  votesAgainInMs(): number | undefined {
    const waits = this.nodes.map((node) => {
      const quarantine = this.quarantineOf(node);
      if (!node.isReady || node.server.isUnresponsive) {
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
      this.#duplicates = this.#findDuplicateNodes();
    }
  }

  /** Two endpoints that lead to one server would let it vote twice. */
  assertDistinctNodes(): void {
    if (this.#duplicates) {
      const [one, other] = this.#duplicates;
      throw new LockError(`The nodes ${one.name} and ${other.name} are the same server`, {
        code: "unsupported",
      });
    }
  }

  async #connect(): Promise<void> {
    await connectMajority(this.nodes, this.majority, this.#clock);
    this.assertDistinctNodes();
    this.#isReady = true;
  }

  /** Undefined while the time of too few is known to judge. Asked for much more often than an offset changes. */
  #medianOffset(): number | undefined {
    let isChanged = false;
    for (const { index, server } of this.nodes) {
      const { offsetMicros } = server.serverClock;
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
    if (movedMs > maxMoveMs + (now - this.#medianAt) * maxDriftRate) {
      this.#era += 1;
      this.#lastTicket = 0; // places of the wrong time may all be ahead of the right one
    }
    this.#median = median;
    this.#medianAt = now;
  }

  #findDuplicateNodes(): readonly [QuorumNode, QuorumNode] | undefined {
    for (const one of this.nodes) {
      const other = this.nodes.find(
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
