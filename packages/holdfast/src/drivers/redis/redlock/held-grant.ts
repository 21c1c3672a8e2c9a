import type { Clock } from "../../../runtime/clock.ts";
import { publish } from "../../../diagnostics.ts";
import type { ExtendResult, VerifyResult } from "../../../driver.ts";
import type { LossReason } from "../../../errors.ts";
import type { Scheduled } from "../../../runtime/timer-queue.ts";
import { remainingValidityMs, validFrom, type Validity } from "../../../validity.ts";
import type { MajorityAttempt } from "./majority-attempt.ts";
import type { NodeSet } from "./node-set.ts";
import { RequestHistory } from "../server/request-history.ts";
import type { LockKeys } from "../protocol/keys.ts";
import { noProposal, withProposedFence, type Reply } from "../protocol/operation.ts";
import { queueEntryExpiry } from "../server/pending-release.ts";
import { validityOf, type FencingRange } from "./majority.ts";
import { readingOf, type ClockReading } from "./clock-reading.ts";
import { quarantineMessage } from "./restart-guard.ts";
import { Broadcast } from "./broadcast.ts";
import { countedVote } from "./counted-votes.ts";
import { countsFrom } from "./vote.ts";
import type { QuorumNode } from "./quorum-node.ts";
import { lossReasonOf } from "../protocol/metadata.ts";

/** A node that has had the grant without a break since it was counted. */
interface Member {
  /** The number of the grant there: another one is another grant. */
  readonly first: number;
  readonly runId: string;
  /** From when on it counts, on the scale of `clock.now()`. */
  readonly since: number;
}

export interface HeldGrantHost {
  readonly nodeSet: NodeSet;
  readonly clock: Clock;
  readonly driftFactor: number;
  /** The node has something of it that is over. */
  readonly cleanUp: (hold: HeldGrant, node: QuorumNode) => void;
}

/** A grant of a quorum: which nodes have it, how it is prolonged, and when it is known to be lost. */
export class HeldGrant implements Scheduled {
  dueAt = 0;
  slot = -1;
  readonly key: string;
  readonly keys: LockKeys;
  readonly token: string;
  readonly #host: HeldGrantHost;
  /** Undefined: it was acquired elsewhere, by what may have left on a node what this process does not know of. */
  readonly #attempt: MajorityAttempt | undefined;
  /** By node. */
  readonly #members: (Member | undefined)[] = [];
  /** By node. */
  readonly #restores: (RequestHistory | undefined)[] = [];
  /** Nodes that do not have it, and why. */
  readonly #withoutGrant = new Map<QuorumNode, LossReason>();
  /** What a majority confirmed after its question had been given up: the next one tells it. */
  #confirmedLate: Validity | undefined;
  /** It was acquired here, or a majority has told that it has it. */
  #wasVerified: boolean;
  isEnded = false;
  /** At some time the nodes that had it were no majority. That is final, as others may have had the lock since. */
  #isLost = false;
  /** Its token would be given a writer's vote again. */
  isDowngraded = false;
  /** The lease's own fencing numbers; undefined: it was acquired elsewhere, and was not prolonged yet. */
  numbers: FencingRange | undefined;
  /** When the end was that a majority confirmed last, on the scale of `clock.now()`. */
  validUntil: number = -Infinity;

  /** @param attempt undefined: it was acquired elsewhere */
  constructor(
    host: HeldGrantHost,
    key: string,
    keys: LockKeys,
    token: string,
    attempt: MajorityAttempt | undefined,
  ) {
    this.#host = host;
    this.key = key;
    this.keys = keys;
    this.token = token;
    this.#attempt = attempt;
    this.#wasVerified = attempt !== undefined;
  }

  /** What its queue member says after the token: a node that was late with its vote may still have one. */
  queueArgsOn(node: QuorumNode): string {
    const voteRequest = this.#attempt?.voteRequests[node.index];
    return voteRequest && this.#attempt ? this.#attempt.operations.queueEntryOn(voteRequest) : "";
  }

  /**
   * When a node has forgotten it by itself: it may still have a place in its queue for it, which no TTL of the grant ends.
   * @param until the end of the grant
   */
  residueExpiry(node: QuorumNode, until: number): number {
    const mayBeQueued = this.#attempt?.voteRequests[node.index]?.mayBeQueued ?? false;
    return mayBeQueued ? Math.max(until, queueEntryExpiry(this.now(), Infinity)) : until;
  }

  /** The latest server time, ms, at which a node may still carry out a request or a refill of it; 0: none is under way. */
  latestExecutionOn({ index }: QuorumNode): number {
    return Math.max(
      this.#attempt?.voteRequests[index]?.history.latest ?? 0,
      this.#restores[index]?.latest ?? 0,
    );
  }

  /** Whether a node may have something of it. */
  mayBeStoredOn(node: QuorumNode): boolean {
    return this.#attempt?.voteRequests[node.index]?.mayHoldResidue ?? true;
  }

  /** Why a node's answer does not count. */
  ineligibleReason(node: QuorumNode, reading: ClockReading): string | null {
    const quarantine = this.#host.nodeSet.quarantineOf(node, reading);
    return quarantine ? quarantineMessage(quarantine) : null;
  }

  now(): number {
    return this.#host.clock.now();
  }

  /** A node's vote counts for this grant, since now. */
  add(node: QuorumNode, first: number, runId: string, since: number = this.#host.clock.now()): void {
    const known = this.#members[node.index];
    if (known?.first !== first || known.runId !== runId) {
      this.#members[node.index] = { first, runId, since }; // else it is told once more of what it has counted for since then
    }
    this.#withoutGrant.delete(node);
  }

  /** A node ended the grant. Returns whether the rest is no majority. */
  end(node: QuorumNode, reason: LossReason): boolean {
    this.#members[node.index] = undefined;
    this.#withoutGrant.set(node, reason);
    const { majority, nodes } = this.#host.nodeSet;
    this.#isLost ||= nodes.length - this.#withoutGrant.size < majority;
    return this.#isLost;
  }

  /**
   * Prolongs it on a majority of all nodes, counting only those that have had it without a break since the last majority that was
   * confirmed. Nodes that miss it are filled again behind that, and count from the next round on.
   */
  async extend(ttlMs: number, info: string, fencingToken: bigint): Promise<ExtendResult> {
    if (this.isLost) {
      return { outcome: "lost", reason: this.#reason() };
    }
    this.numbers ??= { first: Number(fencingToken), last: Number(fencingToken) };
    const { nodeSet, clock, driftFactor } = this.#host;
    const startedAt = clock.now();
    const renewal = new Renewal();
    const firsts = this.#members.flatMap((member) => (member ? [member.first] : [])); // a node that did not agree has a greater one
    const number = Math.max(Number(fencingToken), ...firsts);
    const args = ["extend", this.token, String(ttlMs), info, String(number)];
    const broadcast = new Broadcast<ExtendResult>(this, nodeSet.nodes, nodeSet.nextProposal(), args);
    return broadcast.run(
      (node, reply, reading) => {
        const [status, first] = reply.value as unknown[];
        if (Number(status) === 0 && !this.isDowngraded && !renewal.restored.has(node)) {
          renewal.restored.add(node);
          renewal.afterConfirmation(() => this.#restore(node, ttlMs, reading));
        }
        if (nodeSet.quarantineOf(node, reading)) {
          return "quarantined"; // neither held nor lost: it cannot vote for others either
        } else if (Number(status) !== 1) {
          this.#grantMissing(node, lossReasonOf(status), reply);
        } else if (this.#isUnbroken(node, Number(first), reply, startedAt)) {
          renewal.validities.push(validFrom(reply.sent, ttlMs, 0, driftFactor));
          renewal.nodes.push(node);
        } else {
          renewal.afterConfirmation(() => this.#join(node, Number(first), reply, reading));
        }
        return Number(status) === 1 ? "granted" : "held";
      },
      (isComplete) => this.#decide(renewal, isComplete, broadcast),
    );
  }

  #decide(
    renewal: Renewal,
    isComplete: boolean,
    broadcast: Broadcast<ExtendResult>,
  ): ExtendResult | undefined {
    const { majority } = this.#host.nodeSet;
    if (renewal.validities.length >= majority) {
      const validity = validityOf(renewal.validities, majority);
      if (remainingValidityMs(validity, this.#host.clock) > 0) {
        this.validUntil = Math.max(this.validUntil, validity.until);
        renewal.confirm(); // else it is over by the time that it is heard
      }
      this.#publishExtended(renewal);
      if (renewal.isAbandoned) {
        this.#confirmedLate = validity;
      }
      return { outcome: "renewed", validity };
    }
    if (this.isLost) {
      return { outcome: "lost", reason: this.#reason() };
    }
    if (!isComplete || renewal.isAbandoned) {
      return undefined;
    }
    const late = this.#confirmedLate;
    if (late && remainingValidityMs(late, this.#host.clock) > 0) {
      this.#confirmedLate = undefined;
      return { outcome: "renewed", validity: late };
    }
    renewal.isAbandoned = true;
    return { outcome: "unknown", error: broadcast.error(this.key) };
  }

  /** Once, and not again with each answer that comes behind the majority. */
  #publishExtended(renewal: Renewal): void {
    if (renewal.isPublished) {
      return;
    }
    renewal.isPublished = true;
    const { key, numbers } = this;
    const { nodes, validities } = renewal;
    publish("extended", () => ({
      key,
      fencingToken: this.#attempt === undefined || numbers === undefined ? undefined : BigInt(numbers.first),
      votes: nodes.map((node, index) => {
        const runId = this.#members[node.index]?.runId ?? node.guard.runId ?? "";
        const validity = validities[index] as Validity;
        return countedVote(node, { runId, isNotified: false, validity }, this.#host.clock);
      }),
    }));
  }

  /**
   * Asks whether a majority has it. Whose grant is not known yet is learned by that, from the nodes that have it with no greater number
   * than the lease's: a greater one was given to a request that came late, and others may have had the lock in between.
   */
  verify(fencingToken?: bigint): Promise<VerifyResult> {
    const { nodeSet, clock, driftFactor } = this.#host;
    const { majority, nodes } = nodeSet;
    const startedAt = clock.now();
    const isNew = !this.#wasVerified; // until a majority has answered once
    const held: Validity[] = [];
    const broadcast = new Broadcast<VerifyResult>(this, nodes, noProposal, ["verify", this.token]);
    return broadcast.run(
      (node, reply, reading) => {
        const [status, remainingMs, first] = reply.value as unknown[];
        if (nodeSet.quarantineOf(node, reading)) {
          return "quarantined";
        }
        const isLater = isNew && fencingToken !== undefined && Number(first) > fencingToken;
        if (Number(status) !== 1 || isLater) {
          this.#grantMissing(node, isLater ? "expired" : lossReasonOf(status), reply);
          return "held";
        }
        if (isNew) {
          this.add(node, Number(first), reply.runId);
        }
        if (isNew || this.#isUnbroken(node, Number(first), reply, startedAt)) {
          held.push(validFrom(reply.sent, Math.max(0, Number(remainingMs)), 0, driftFactor));
        }
        return "granted";
      },
      (isComplete) => {
        const validity = held.length < majority ? undefined : validityOf(held, majority);
        // The other nodes may have it for longer. They are waited for where little is left: for a renewal, which takes as long as this
        // did, or beside what one node has, where another one only has the claim that it gave by message.
        const restMs = validity ? remainingValidityMs(validity, clock) : 0;
        const maxRemainingMs = Math.max(0, ...held.map((one) => remainingValidityMs(one, clock)));
        const isEnough = restMs > 2 * (clock.now() - startedAt) && restMs > maxRemainingMs / 2;
        if (validity && (isComplete || isEnough)) {
          this.#wasVerified = true;
          this.validUntil = Math.max(this.validUntil, validity.until);
          return { outcome: "held", validity };
        }
        if (this.isLost) {
          return { outcome: "lost", reason: this.#reason() };
        }
        if (isComplete) {
          throw broadcast.error(this.key);
        }
        return undefined;
      },
    );
  }

  /** Whether it was acquired here, or learned of by {@link verify}. */
  get isKnown(): boolean {
    return this.#wasVerified;
  }

  /** Those without it left less than a majority, at any time. */
  get isLost(): boolean {
    return this.#isLost;
  }

  #reason(): LossReason {
    const reasons = [...this.#withoutGrant.values()];
    return (["broken", "stolen"] as const).find((reason) => reasons.includes(reason)) ?? "expired";
  }

  /** An answer that is older than the membership tells nothing of it. */
  #grantMissing(node: QuorumNode, reason: LossReason, reply: Reply): void {
    const member = this.#members[node.index];
    if (!member || member.since <= reply.sent.now) {
      this.end(node, reason);
    }
  }

  #isUnbroken(node: QuorumNode, first: number, reply: Reply, startedAt: number): boolean {
    const member = this.#members[node.index];
    if (!member || member.since > startedAt) {
      return false;
    }
    const isSameRun = member.runId === reply.runId || node.guard.isDurable;
    if (member.first === first && isSameRun) {
      return true;
    }
    this.#members[node.index] = undefined;
    return false;
  }

  #join(node: QuorumNode, first: number, reply: Reply, reading: ClockReading, since?: number): void {
    const member = this.#members[node.index];
    if (!this.isEnded && !this.isLost && !this.#host.nodeSet.quarantineOf(node, reading) && !member) {
      this.add(node, first, reply.runId, since);
    }
  }

  /**
   * The node has forgotten it: only behind a majority that has not, and before the release, which may be all that ends it there. A
   * node that is asked too late, when the lease is over, does nothing.
   * @param clockThen its clock, as it said that it has not got it
   */
  #restore(node: QuorumNode, ttlMs: number, clockThen: ClockReading): void {
    if (this.isEnded || this.numbers === undefined) {
      return;
    }
    const { nodeSet, clock, driftFactor } = this.#host;
    const queueArgs = this.queueArgsOn(node);
    this.#attempt?.voteRequests[node.index]?.noteResidue();
    const { keys, numbers } = this;
    const latest = Math.floor(this.validUntil + clockThen.minMs);
    const block = [String(numbers.first), String(numbers.last)];
    const args = ["refill", this.token, queueArgs, String(ttlMs), ...block, String(latest)];
    const history = (this.#restores[node.index] ??= new RequestHistory());
    history.sent(latest);
    node.server.perform({
      keys,
      args: withProposedFence(args, nodeSet.nextProposal()),
      answered: (reply) => {
        history.answered(reply.sameConnection);
        const [status, first, , , waitMs] = reply.value as unknown[];
        if (Number(status) !== 1) {
          return;
        }
        if (this.isEnded || this.isLost) {
          this.#host.cleanUp(this, node);
        } else {
          const now = clock.now();
          const reading = readingOf(reply.serverMicros, reply.sent.now, now);
          const since = countsFrom(now, Number(waitMs ?? 0), driftFactor);
          this.#join(node, Number(first), reply, reading, since);
        }
      },
      failed: (error) => history.failed(error),
    });
  }
}

/** One round of prolonging. */
class Renewal {
  readonly validities: Validity[] = [];
  /** Whose they are. */
  readonly nodes: QuorumNode[] = [];
  /** Who is filled again. */
  readonly restored = new Set<QuorumNode>();
  /** Its outcome was told to be unknown. */
  isAbandoned = false;
  /** Its votes were told. */
  isPublished = false;
  #isConfirmed = false;
  readonly #afterConfirm: (() => void)[] = [];

  /** To be done once a majority has confirmed. */
  afterConfirmation(action: () => void): void {
    if (this.#isConfirmed) {
      action();
    } else {
      this.#afterConfirm.push(action);
    }
  }

  confirm(): void {
    this.#isConfirmed = true;
    for (const action of this.#afterConfirm.splice(0)) {
      action();
    }
  }
}
