import type { Clock } from "../../../runtime/clock.ts";
import { LockError } from "../../../errors.ts";
import { pause } from "../../../runtime/timeout.ts";
import { majorityOf, medianOf } from "./majority.ts";
import { queueTtlMs } from "../server/releases.ts";
import { latestTime } from "../server/server-clock.ts";
import { ClockAgreement, type ClockReading } from "./clock-agreement.ts";
import { connectMajority } from "./connect-majority.ts";
import type { Quarantine } from "./restart-guard.ts";
import type { QuorumNode } from "./quorum-node.ts";

/**
 * How far a proposed fencing number may be ahead of the nodes' time. A node limits proposals to one second ahead of its own clock, so
 * that each node would give another number to a proposal further ahead.
 */
const maxLeadMicros = 500_000;
/** A larger change of the nodes' median time, beyond the drift of the clocks, makes the written tickets and deadlines wrong. */
const maxMoveMs = 50;
const maxDriftRate = 0.01;

interface NodeSetOptions {
  readonly maxClockDifferenceMs: number;
  readonly commandTimeoutMs: number;
}

/** The nodes of a quorum: their common time, and which nodes may vote. */
export class NodeSet {
  readonly nodes: readonly QuorumNode[];
  readonly majority: number;
  /** A node whose clock differs by more from the clocks of the other nodes does not vote. */
  readonly maxClockDifferenceMs: number;
  readonly #clock: Clock;
  readonly #commandTimeoutMs: number;
  readonly #clocks: ClockAgreement;
  #lastTicket = 0;
  #lastProposal = 0;
  /** How far the proposed fencing numbers are ahead of `clock.now()`, in microseconds. */
  #lead = -Infinity;
  /** The offsets of the nodes' clocks at the last calculation of the median. */
  readonly #offsets: (number | undefined)[] = [];
  #median: number | undefined;
  /** The time of the median's last change, on the scale of `clock.now()`. */
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

  /** The clocks of a majority are known. After a suspension of the machine, the next replies correct them. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** A new era starts when replies show that the nodes' median time was wrong, and with it the tickets and deadlines in the queues. */
  get era(): number {
    this.#medianOffset();
    return this.#era;
  }

  /**
   * Connects to all nodes, and resolves soon after a majority has replied. Rejects with a `QuorumError` if too few nodes reply, and with
   * `unsupported` if two nodes are the same server. The next call tries again.
   */
  ready(): Promise<void> {
    this.#readying ??= this.#connect().catch((error: unknown) => {
      this.#readying = undefined;
      throw error;
    });
    return this.#readying;
  }

  /** A new ticket for the queues: the nodes' median time in microseconds, strictly increasing in this process. */
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
   * late and by the median time, and the node compares the deadline with its own clock, which may be slow. A queue without changes
   * expires sooner.
   */
  lagMs({ server: { serverClock } }: QuorumNode): number {
    const slowMs = serverClock.isKnown ? (this.micros() - serverClock.micros()) / 1000 : 0;
    return Math.min(Math.max(0, slowMs) + this.maxClockDifferenceMs, queueTtlMs);
  }

  /**
   * The fencing number that is proposed to all nodes. The proposal follows the largest number that any node reported, because the nodes
   * would each give another number to a smaller proposal.
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

  /** The latest server time, ms, at which a node may execute an operation that is sent now. */
  latestExecution(): string {
    return latestTime(Math.floor(this.micros() / 1000), this.#commandTimeoutMs);
  }

  /** A node reported this fencing number: later proposals are greater. */
  raiseProposal(number: number): void {
    this.#lead = Math.max(this.#lead, number - this.#clock.now() * 1000);
  }

  /**
   * Why a node does not vote now; undefined: the node votes.
   * @param reading the node's clock at the reply or notification with the vote; undefined: now
   */
  quarantineOf(node: QuorumNode, reading?: ClockReading): Quarantine | undefined {
    return this.#healthQuarantine(node) ?? this.#clocks.quarantineOf(node, reading);
  }

  /** Why a vote does not count for some time; undefined: the vote counts, or may count after the next reply of the node. */
  lastingQuarantineOf(node: QuorumNode, reading: ClockReading): Quarantine | undefined {
    return lasting(this.quarantineOf(node, reading));
  }

  /** Why a node gets no request. A node whose clock is off does, because each reply shows its time. */
  requestQuarantineOf(node: QuorumNode): Quarantine | undefined {
    return lasting(this.#healthQuarantine(node));
  }

  #healthQuarantine(node: QuorumNode): Quarantine | undefined {
    return this.#duplicates?.includes(node) === true
      ? { reason: "two of the nodes are the same server", remainingMs: null, isMomentary: false }
      : node.guard.quarantine;
  }

  /** In how many milliseconds a majority may vote again; undefined: a majority may vote, or the time is unknown. */
  votesAgainInMs(): number | undefined {
    const waits = this.nodes.map((node) => {
      const quarantine = this.quarantineOf(node);
      if (!node.isReady || node.server.isUnresponsive) {
        return Infinity;
      }
      return quarantine === undefined ? 0 : (quarantine.remainingMs ?? Infinity);
    });
    const wait = waits.sort((a, b) => a - b)[this.majority - 1] ?? 0;
    return wait > 0 && wait < Infinity ? Math.ceil(wait) : undefined;
  }

  /** A node has replied. */
  answered(isNewRun: boolean): void {
    if (isNewRun) {
      this.#duplicates = this.#findDuplicateNodes();
    }
  }

  /** Two connections to the same server would give that server two votes. */
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

  /** Undefined while too few clocks are known. Recalculated only if an offset has changed, because most calls find no change. */
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
      this.#lastTicket = 0; // tickets of the wrong time may all be ahead of the right time
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
