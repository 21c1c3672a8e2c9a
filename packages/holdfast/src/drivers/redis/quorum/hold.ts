import type { Clock } from "../../../clock.ts";
import type { Extension, Verified } from "../../../driver.ts";
import { QuorumError, type LossReason, type NodeVote } from "../../../errors.ts";
import type { Timed } from "../../../timer-queue.ts";
import { validFrom, type Validity } from "../../../validity.ts";
import type { Operation, Reply } from "../batch.ts";
import type { Bid } from "./bid.ts";
import type { Electorate } from "./electorate.ts";
import { outcomeOf, refusalBy } from "../failures.ts";
import type { LockKeys } from "../keys.ts";
import { validityOf } from "./agreement.ts";
import { quarantineWords } from "./restart-guard.ts";
import type { Voter } from "./voter.ts";
import { reasonOf } from "../words.ts";

/** A node that has had the grant without a break since it was counted. */
interface Member {
  /** The number of the grant there: another one is another grant. */
  readonly first: number;
  readonly runId: string;
  /** From when on it counts, on the scale of `clock.now()`. */
  readonly since: number;
}

interface HoldHost {
  readonly electorate: Electorate;
  readonly clock: Clock;
  readonly driftFactor: number;
}

/** A grant of a quorum: which nodes have it, how it is prolonged, and when it is known to be lost. */
export class QuorumHold implements Timed {
  dueAt = 0;
  slot = -1;
  readonly key: string;
  readonly keys: LockKeys;
  readonly token: string;
  readonly #host: HoldHost;
  readonly #bid: Bid | undefined;
  readonly #members = new Map<Voter, Member>();
  /** Nodes that do not have it, and why. */
  readonly #without = new Map<Voter, LossReason>();
  isOver = false;
  /** The lease's own fencing number; undefined: it was acquired elsewhere. */
  fencingNumber: number | undefined;

  /** @param bid undefined: it was acquired elsewhere */
  constructor(host: HoldHost, key: string, keys: LockKeys, token: string, bid: Bid | undefined) {
    this.#host = host;
    this.key = key;
    this.keys = keys;
    this.token = token;
    this.#bid = bid;
  }

  /** What its queue member says after the token: a node that was late with its vote may still have one. */
  termsOn(voter: Voter): string {
    const ballot = this.#bid?.ballots[voter.index];
    return ballot && this.#bid ? this.#bid.memberOn(ballot) : "";
  }

  /** Whether a node may have something of it. */
  mayBeOn(voter: Voter): boolean {
    return this.#bid?.ballots[voter.index]?.mayHaveLeft ?? true;
  }

  /** What the nodes are told of its number where they have others: a refilled node gave a new one. */
  ownNumber(): { fencingToken: bigint } | undefined {
    const { fencingNumber } = this;
    const isUneven = [...this.#members.values()].some(({ first }) => first !== fencingNumber);
    return fencingNumber === undefined || !isUneven ? undefined : { fencingToken: BigInt(fencingNumber) };
  }

  /** Why a node's answers do not count. */
  whyNot(voter: Voter): string | null {
    const quarantine = this.#host.electorate.quarantineOf(voter);
    return quarantine ? quarantineWords(quarantine) : null;
  }

  now(): number {
    return this.#host.clock.now();
  }

  /** A node's vote counts for this grant, since now. */
  add(voter: Voter, first: number, runId: string, since: number = this.#host.clock.now()): void {
    const known = this.#members.get(voter);
    if (known?.first !== first || known.runId !== runId) {
      this.#members.set(voter, { first, runId, since }); // else it is told once more of what it has counted for since then
    }
    this.#without.delete(voter);
  }

  /** A node ended the grant. Returns whether the rest is no majority. */
  end(voter: Voter, reason: LossReason): boolean {
    this.#members.delete(voter);
    this.#without.set(voter, reason);
    return this.#isLost;
  }

  /**
   * Prolongs it on a majority of all nodes, counting only those that have had it without a break since the last majority that was
   * confirmed. Nodes that miss it are filled again behind that, and count from the next round on.
   */
  extend(ttlMs: number, words: string): Promise<Extension> {
    const { electorate, clock, driftFactor } = this.#host;
    const { majority, voters } = electorate;
    const begun = clock.now();
    const candidate = electorate.candidate();
    const renewed: Validity[] = [];
    const joining: (() => void)[] = [];
    let isConfirmed = false;
    const afterwards = (action: () => void): void => {
      if (isConfirmed) {
        action();
      } else {
        joining.push(action);
      }
    };
    const round = new Round<Extension>(this, voters, candidate, ["extend", this.token, String(ttlMs), words]);
    return round.run(
      (voter, reply) => {
        const [status, first] = reply.value as unknown[];
        if (Number(status) === 0) {
          afterwards(() => {
            this.#refill(voter, ttlMs);
          });
        }
        if (electorate.quarantineOf(voter)) {
          return "quarantined"; // neither held nor lost: it cannot vote for others either
        } else if (Number(status) !== 1) {
          this.#isMissing(voter, reasonOf(status), reply);
        } else if (this.#isUnbroken(voter, Number(first), reply, begun)) {
          renewed.push(validFrom(reply.sent, ttlMs, 0, driftFactor));
        } else {
          afterwards(() => {
            this.#join(voter, Number(first), reply);
          });
        }
        return Number(status) === 1 ? "granted" : "held";
      },
      (isComplete) => {
        if (renewed.length >= majority) {
          isConfirmed = true;
          for (const action of joining.splice(0)) {
            action();
          }
          return { outcome: "renewed", validity: validityOf(renewed, majority) };
        }
        if (this.#isLost) {
          return { outcome: "lost", reason: this.#reason() };
        }
        return isComplete ? { outcome: "unknown", error: round.error(this.key) } : undefined;
      },
    );
  }

  /** Asks whether a majority has it. Whose grant is not known yet is learned by that. */
  verify(): Promise<Verified> {
    const { electorate, clock, driftFactor } = this.#host;
    const { majority, voters } = electorate;
    const begun = clock.now();
    const isNew = this.#members.size === 0;
    const held: Validity[] = [];
    const round = new Round<Verified>(this, voters, undefined, ["verify", this.token]);
    return round.run(
      (voter, reply) => {
        const [status, remainingMs, first] = reply.value as unknown[];
        if (electorate.quarantineOf(voter)) {
          return "quarantined";
        }
        if (Number(status) !== 1) {
          this.#isMissing(voter, reasonOf(status), reply);
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
        if (held.length >= majority) {
          return { outcome: "held", validity: validityOf(held, majority) };
        }
        if (this.#isLost) {
          return { outcome: "lost", reason: this.#reason() };
        }
        if (isComplete) {
          throw round.error(this.key);
        }
        return undefined;
      },
    );
  }

  /** Those without it leave less than a majority. */
  get #isLost(): boolean {
    const { majority, voters } = this.#host.electorate;
    return voters.length - this.#without.size < majority;
  }

  #reason(): LossReason {
    const reasons = [...this.#without.values()];
    return (["broken", "stolen"] as const).find((reason) => reasons.includes(reason)) ?? "expired";
  }

  /** An answer that is older than the membership tells nothing of it. */
  #isMissing(voter: Voter, reason: LossReason, reply: Reply): void {
    const member = this.#members.get(voter);
    if (!member || member.since <= reply.sent.now) {
      this.#members.delete(voter);
      this.#without.set(voter, reason);
    }
  }

  #isUnbroken(voter: Voter, first: number, reply: Reply, begun: number): boolean {
    const member = this.#members.get(voter);
    if (!member || member.since > begun) {
      return false;
    }
    const isSameRun = member.runId === reply.runId || voter.guard.isDurable;
    if (member.first === first && isSameRun) {
      return true;
    }
    this.#members.delete(voter);
    return false;
  }

  #join(voter: Voter, first: number, reply: Reply): void {
    const member = this.#members.get(voter);
    if (!this.isOver && !this.#host.electorate.quarantineOf(voter) && !member) {
      this.add(voter, first, reply.runId);
    }
  }

  /** The node has forgotten it: only behind a majority that has not. */
  #refill(voter: Voter, ttlMs: number): void {
    const { electorate } = this.#host;
    const terms = this.termsOn(voter);
    this.#bid?.ballots[voter.index]?.left();
    voter.node.perform({
      keys: this.keys,
      candidate: electorate.candidate(),
      args: ["acquire", this.token, terms, String(ttlMs), "1", "0", ""],
      answered: (reply) => {
        const [status, first] = reply.value as unknown[];
        if (Number(status) !== 1) {
          return;
        }
        if (this.isOver) {
          const until = this.#host.clock.now() + ttlMs;
          const { key, keys, token } = this;
          voter.releaser.takeBack({ key, keys, token, terms, until, candidate: electorate.candidate() });
        } else {
          this.#join(voter, Number(first), reply);
        }
      },
      failed: () => undefined,
    });
  }
}

/** One question to all nodes about one grant, decided as soon as the answers allow it. */
class Round<Result> {
  readonly #hold: QuorumHold;
  readonly #voters: readonly Voter[];
  readonly #candidate: string | undefined;
  readonly #args: readonly string[];
  readonly #votes: NodeVote[];
  readonly #errors: unknown[] = [];
  #answers = 0;

  constructor(
    hold: QuorumHold,
    voters: readonly Voter[],
    candidate: string | undefined,
    args: readonly string[],
  ) {
    this.#hold = hold;
    this.#voters = voters;
    this.#candidate = candidate;
    this.#args = args;
    this.#votes = voters.map(({ name }) => ({
      node: name,
      vote: "timeout",
      latencyMs: null,
      reason: "not answered yet",
    }));
  }

  /**
   * @param answered what a node's answer comes to; called also for answers that come after the decision
   * @param decide called after each answer; has to decide when all have come
   */
  run(
    answered: (voter: Voter, reply: Reply) => NodeVote["vote"],
    decide: (isComplete: boolean) => Result | undefined,
  ): Promise<Result> {
    return new Promise((resolve, reject) => {
      for (const voter of this.#voters) {
        let isCounted = false;
        const heard = (vote: NodeVote["vote"], reply: Reply | undefined, reason: string | null): void => {
          const latencyMs = reply ? this.#hold.now() - reply.sent.now : null;
          this.#votes[voter.index] = { node: voter.name, vote, latencyMs, reason };
          this.#answers += isCounted ? 0 : 1;
          isCounted = true;
          try {
            const result = decide(this.#answers === this.#voters.length);
            if (result !== undefined) {
              resolve(result);
            }
          } catch (error) {
            reject(error as Error);
          }
        };
        const failed = (error: unknown): void => {
          this.#errors.push(error);
          const reason = error instanceof Error ? error.message : String(error);
          heard(outcomeOf(error) === "unknown" ? "timeout" : "error", undefined, reason);
        };
        const question: Operation = {
          keys: this.#hold.keys,
          args: this.#args,
          candidate: this.#candidate,
          answered: (reply) => {
            const value = reply.value as unknown[];
            if (value[0] === "error") {
              failed(refusalBy(String(value[1])));
            } else {
              const vote = answered(voter, reply);
              heard(vote, reply, vote === "quarantined" ? this.#hold.whyNot(voter) : null);
            }
          },
          failed,
        };
        voter.node.perform(question);
      }
    });
  }

  error(key: string): QuorumError {
    const cause = this.#errors[0];
    const isKnown = this.#errors.every((error) => outcomeOf(error) === "none");
    return new QuorumError({
      key,
      votes: this.#votes,
      outcome: isKnown ? "none" : "unknown",
      retryable: true,
      cause,
    });
  }
}
