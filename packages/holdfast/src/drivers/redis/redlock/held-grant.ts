import type { Clock } from "../../../runtime/clock.ts";
import { tell } from "../../../diagnostics.ts";
import type { Extension, Verified } from "../../../driver.ts";
import type { LossReason } from "../../../errors.ts";
import type { Timed } from "../../../runtime/timer-queue.ts";
import { leftOf, validFrom, type Validity } from "../../../validity.ts";
import type { Bid } from "./majority-attempt.ts";
import type { Electorate } from "./node-set.ts";
import { Attempts } from "../server/request-history.ts";
import type { LockKeys } from "../protocol/keys.ts";
import { noCandidate, withCandidate, type Reply } from "../protocol/operation.ts";
import { placeUntil } from "../server/release-queue.ts";
import { validityOf, type Block } from "./majority.ts";
import { readingOf, type ClockReading } from "./clock-reading.ts";
import { quarantineWords } from "./restart-guard.ts";
import { Round } from "./broadcast.ts";
import { countedVote } from "./counted-votes.ts";
import { countsFrom } from "./vote.ts";
import type { Voter } from "./quorum-node.ts";
import { reasonOf } from "../protocol/metadata.ts";

/** A node that has had the grant without a break since it was counted. */
interface Member {
  /** The number of the grant there: another one is another grant. */
  readonly first: number;
  readonly runId: string;
  /** From when on it counts, on the scale of `clock.now()`. */
  readonly since: number;
}

export interface HoldHost {
  readonly electorate: Electorate;
  readonly clock: Clock;
  readonly driftFactor: number;
  /** The node has something of it that is over. */
  readonly takeBack: (hold: QuorumHold, voter: Voter) => void;
}

/** A grant of a quorum: which nodes have it, how it is prolonged, and when it is known to be lost. */
export class QuorumHold implements Timed {
  dueAt = 0;
  slot = -1;
  readonly key: string;
  readonly keys: LockKeys;
  readonly token: string;
  readonly #host: HoldHost;
  /** Undefined: it was acquired elsewhere, by what may have left on a node what this process does not know of. */
  readonly #bid: Bid | undefined;
  /** By node. */
  readonly #members: (Member | undefined)[] = [];
  /** By node. */
  readonly #refills: (Attempts | undefined)[] = [];
  /** Nodes that do not have it, and why. */
  readonly #without = new Map<Voter, LossReason>();
  /** What a majority confirmed after its question had been given up: the next one tells it. */
  #confirmedLate: Validity | undefined;
  /** It was acquired here, or a majority has told that it has it. */
  #wasVerified: boolean;
  isOver = false;
  /** At some time the nodes that had it were no majority. That is final, as others may have had the lock since. */
  #isLost = false;
  /** Its token would be given a writer's vote again. */
  isDowngraded = false;
  /** The lease's own fencing numbers; undefined: it was acquired elsewhere, and was not prolonged yet. */
  numbers: Block | undefined;
  /** When the end was that a majority confirmed last, on the scale of `clock.now()`. */
  validUntil: number = -Infinity;

  /** @param bid undefined: it was acquired elsewhere */
  constructor(host: HoldHost, key: string, keys: LockKeys, token: string, bid: Bid | undefined) {
    this.#host = host;
    this.key = key;
    this.keys = keys;
    this.token = token;
    this.#bid = bid;
    this.#wasVerified = bid !== undefined;
  }

  /** What its queue member says after the token: a node that was late with its vote may still have one. */
  termsOn(voter: Voter): string {
    const ballot = this.#bid?.ballots[voter.index];
    return ballot && this.#bid ? this.#bid.wording.memberOn(ballot) : "";
  }

  /**
   * When a node has forgotten it by itself: it may still have a place in its queue for it, which no TTL of the grant ends.
   * @param until the end of the grant
   */
  forgottenAt(voter: Voter, until: number): number {
    const mayBeQueued = this.#bid?.ballots[voter.index]?.mayBeQueued ?? false;
    return mayBeQueued ? Math.max(until, placeUntil(this.now(), Infinity)) : until;
  }

  /** The latest server time, ms, at which a node may still carry out a request or a refill of it; 0: none is under way. */
  latestOn({ index }: Voter): number {
    return Math.max(this.#bid?.ballots[index]?.attempts.latest ?? 0, this.#refills[index]?.latest ?? 0);
  }

  /** Whether a node may have something of it. */
  mayBeOn(voter: Voter): boolean {
    return this.#bid?.ballots[voter.index]?.mayHaveLeft ?? true;
  }

  /** Why a node's answer does not count. */
  whyNot(voter: Voter, reading: ClockReading): string | null {
    const quarantine = this.#host.electorate.quarantineOf(voter, reading);
    return quarantine ? quarantineWords(quarantine) : null;
  }

  now(): number {
    return this.#host.clock.now();
  }

  /** A node's vote counts for this grant, since now. */
  add(voter: Voter, first: number, runId: string, since: number = this.#host.clock.now()): void {
    const known = this.#members[voter.index];
    if (known?.first !== first || known.runId !== runId) {
      this.#members[voter.index] = { first, runId, since }; // else it is told once more of what it has counted for since then
    }
    this.#without.delete(voter);
  }

  /** A node ended the grant. Returns whether the rest is no majority. */
  end(voter: Voter, reason: LossReason): boolean {
    this.#members[voter.index] = undefined;
    this.#without.set(voter, reason);
    const { majority, voters } = this.#host.electorate;
    this.#isLost ||= voters.length - this.#without.size < majority;
    return this.#isLost;
  }

  /**
   * Prolongs it on a majority of all nodes, counting only those that have had it without a break since the last majority that was
   * confirmed. Nodes that miss it are filled again behind that, and count from the next round on.
   */
  async extend(ttlMs: number, words: string, fencingToken: bigint): Promise<Extension> {
    if (this.isLost) {
      return { outcome: "lost", reason: this.#reason() };
    }
    this.numbers ??= { first: Number(fencingToken), last: Number(fencingToken) };
    const { electorate, clock, driftFactor } = this.#host;
    const begun = clock.now();
    const renewal = new Renewal();
    const firsts = this.#members.flatMap((member) => (member ? [member.first] : [])); // a node that did not agree has a greater one
    const number = Math.max(Number(fencingToken), ...firsts);
    const args = ["extend", this.token, String(ttlMs), words, String(number)];
    const round = new Round<Extension>(this, electorate.voters, electorate.candidate(), args);
    return round.run(
      (voter, reply, reading) => {
        const [status, first] = reply.value as unknown[];
        if (Number(status) === 0 && !this.isDowngraded && !renewal.fills.has(voter)) {
          renewal.fills.add(voter);
          renewal.behind(() => this.#refill(voter, ttlMs, reading));
        }
        if (electorate.quarantineOf(voter, reading)) {
          return "quarantined"; // neither held nor lost: it cannot vote for others either
        } else if (Number(status) !== 1) {
          this.#isMissing(voter, reasonOf(status), reply);
        } else if (this.#isUnbroken(voter, Number(first), reply, begun)) {
          renewal.validities.push(validFrom(reply.sent, ttlMs, 0, driftFactor));
          renewal.voters.push(voter);
        } else {
          renewal.behind(() => this.#join(voter, Number(first), reply, reading));
        }
        return Number(status) === 1 ? "granted" : "held";
      },
      (isComplete) => this.#decide(renewal, isComplete, round),
    );
  }

  #decide(renewal: Renewal, isComplete: boolean, round: Round<Extension>): Extension | undefined {
    const { majority } = this.#host.electorate;
    if (renewal.validities.length >= majority) {
      const validity = validityOf(renewal.validities, majority);
      if (leftOf(validity, this.#host.clock) > 0) {
        this.validUntil = Math.max(this.validUntil, validity.until);
        renewal.confirm(); // else it is over by the time that it is heard
      }
      this.#tellExtended(renewal);
      if (renewal.isGivenUp) {
        this.#confirmedLate = validity;
      }
      return { outcome: "renewed", validity };
    }
    if (this.isLost) {
      return { outcome: "lost", reason: this.#reason() };
    }
    if (!isComplete || renewal.isGivenUp) {
      return undefined;
    }
    const late = this.#confirmedLate;
    if (late && leftOf(late, this.#host.clock) > 0) {
      this.#confirmedLate = undefined;
      return { outcome: "renewed", validity: late };
    }
    renewal.isGivenUp = true;
    return { outcome: "unknown", error: round.error(this.key) };
  }

  /** Once, and not again with each answer that comes behind the majority. */
  #tellExtended(renewal: Renewal): void {
    if (renewal.isTold) {
      return;
    }
    renewal.isTold = true;
    const { key, numbers } = this;
    const { voters, validities } = renewal;
    tell("extended", () => ({
      key,
      fencingToken: this.#bid === undefined || numbers === undefined ? undefined : BigInt(numbers.first),
      votes: voters.map((voter, index) => {
        const runId = this.#members[voter.index]?.runId ?? voter.guard.runId ?? "";
        const validity = validities[index] as Validity;
        return countedVote(voter, { runId, isPushed: false, validity }, this.#host.clock);
      }),
    }));
  }

  /**
   * Asks whether a majority has it. Whose grant is not known yet is learned by that, from the nodes that have it with no greater number
   * than the lease's: a greater one was given to a request that came late, and others may have had the lock in between.
   */
  verify(fencingToken?: bigint): Promise<Verified> {
    const { electorate, clock, driftFactor } = this.#host;
    const { majority, voters } = electorate;
    const begun = clock.now();
    const isNew = !this.#wasVerified; // until a majority has answered once
    const held: Validity[] = [];
    const round = new Round<Verified>(this, voters, noCandidate, ["verify", this.token]);
    return round.run(
      (voter, reply, reading) => {
        const [status, remainingMs, first] = reply.value as unknown[];
        if (electorate.quarantineOf(voter, reading)) {
          return "quarantined";
        }
        const isLater = isNew && fencingToken !== undefined && Number(first) > fencingToken;
        if (Number(status) !== 1 || isLater) {
          this.#isMissing(voter, isLater ? "expired" : reasonOf(status), reply);
          return "held";
        }
        if (isNew) {
          this.add(voter, Number(first), reply.runId);
        }
        if (isNew || this.#isUnbroken(voter, Number(first), reply, begun)) {
          held.push(validFrom(reply.sent, Math.max(0, Number(remainingMs)), 0, driftFactor));
        }
        return "granted";
      },
      (isComplete) => {
        const validity = held.length < majority ? undefined : validityOf(held, majority);
        // The other nodes may have it for longer. They are waited for where little is left: for a renewal, which takes as long as this
        // did, or beside what one node has, where another one only has the claim that it gave by message.
        const leftMs = validity ? leftOf(validity, clock) : 0;
        const longestMs = Math.max(0, ...held.map((one) => leftOf(one, clock)));
        const isEnough = leftMs > 2 * (clock.now() - begun) && leftMs > longestMs / 2;
        if (validity && (isComplete || isEnough)) {
          this.#wasVerified = true;
          this.validUntil = Math.max(this.validUntil, validity.until);
          return { outcome: "held", validity };
        }
        if (this.isLost) {
          return { outcome: "lost", reason: this.#reason() };
        }
        if (isComplete) {
          throw round.error(this.key);
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
    const reasons = [...this.#without.values()];
    return (["broken", "stolen"] as const).find((reason) => reasons.includes(reason)) ?? "expired";
  }

  /** An answer that is older than the membership tells nothing of it. */
  #isMissing(voter: Voter, reason: LossReason, reply: Reply): void {
    const member = this.#members[voter.index];
    if (!member || member.since <= reply.sent.now) {
      this.end(voter, reason);
    }
  }

  #isUnbroken(voter: Voter, first: number, reply: Reply, begun: number): boolean {
    const member = this.#members[voter.index];
    if (!member || member.since > begun) {
      return false;
    }
    const isSameRun = member.runId === reply.runId || voter.guard.isDurable;
    if (member.first === first && isSameRun) {
      return true;
    }
    this.#members[voter.index] = undefined;
    return false;
  }

  #join(voter: Voter, first: number, reply: Reply, reading: ClockReading, since?: number): void {
    const member = this.#members[voter.index];
    if (!this.isOver && !this.isLost && !this.#host.electorate.quarantineOf(voter, reading) && !member) {
      this.add(voter, first, reply.runId, since);
    }
  }

  /**
   * The node has forgotten it: only behind a majority that has not, and before the release, which may be all that ends it there. A
   * node that is asked too late, when the lease is over, does nothing.
   * @param asked its clock, as it said that it has not got it
   */
  #refill(voter: Voter, ttlMs: number, asked: ClockReading): void {
    if (this.isOver || this.numbers === undefined) {
      return;
    }
    const { electorate, clock, driftFactor } = this.#host;
    const terms = this.termsOn(voter);
    this.#bid?.ballots[voter.index]?.left();
    const { keys, numbers } = this;
    const latest = Math.floor(this.validUntil + asked.leastMs);
    const block = [String(numbers.first), String(numbers.last)];
    const args = ["refill", this.token, terms, String(ttlMs), ...block, String(latest)];
    const attempts = (this.#refills[voter.index] ??= new Attempts());
    attempts.sent(latest);
    voter.node.perform({
      keys,
      args: withCandidate(args, electorate.candidate()),
      answered: (reply) => {
        attempts.answered(reply.isSteady);
        const [status, first, , , waitMs] = reply.value as unknown[];
        if (Number(status) !== 1) {
          return;
        }
        if (this.isOver || this.isLost) {
          this.#host.takeBack(this, voter);
        } else {
          const now = clock.now();
          const reading = readingOf(reply.serverMicros, reply.sent.now, now);
          const since = countsFrom(now, Number(waitMs ?? 0), driftFactor);
          this.#join(voter, Number(first), reply, reading, since);
        }
      },
      failed: (error) => attempts.failed(error),
    });
  }
}

/** One round of prolonging. */
class Renewal {
  readonly validities: Validity[] = [];
  /** Whose they are. */
  readonly voters: Voter[] = [];
  /** Who is filled again. */
  readonly fills = new Set<Voter>();
  /** Its outcome was told to be unknown. */
  isGivenUp = false;
  /** Its votes were told. */
  isTold = false;
  #isConfirmed = false;
  readonly #behind: (() => void)[] = [];

  /** To be done once a majority has confirmed. */
  behind(action: () => void): void {
    if (this.#isConfirmed) {
      action();
    } else {
      this.#behind.push(action);
    }
  }

  confirm(): void {
    this.#isConfirmed = true;
    for (const action of this.#behind.splice(0)) {
      action();
    }
  }
}
