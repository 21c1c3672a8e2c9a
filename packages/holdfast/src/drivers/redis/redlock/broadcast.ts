import { QuorumError, type NodeVote } from "../../../errors.ts";
import { messageOf, outcomeOf, refusalBy } from "../server/errors.ts";
import { withCandidate, type Operation, type Reply } from "../protocol/operation.ts";
import { readingOf, type ClockReading } from "./clock-reading.ts";
import type { QuorumHold } from "./held-grant.ts";
import type { Voter } from "./quorum-node.ts";

/** One question to all nodes about one grant, decided as soon as the answers allow it. */
export class Round<Result> {
  readonly #hold: QuorumHold;
  readonly #voters: readonly Voter[];
  readonly #args: readonly string[];
  readonly #votes: NodeVote[];
  readonly #errors: unknown[] = [];
  /** What the answers come to of nodes that did not count when they came: the next answer may show that they do. */
  readonly #uncounted = new Map<Voter, () => void>();
  #answers = 0;

  constructor(hold: QuorumHold, voters: readonly Voter[], candidate: string, args: readonly string[]) {
    this.#hold = hold;
    this.#voters = voters;
    this.#args = withCandidate(args, candidate);
    this.#votes = voters.map(({ name }) => ({
      node: name,
      vote: "timeout",
      latencyMs: null,
      reason: "not answered yet",
    }));
  }

  /**
   * @param answered what a node's answer comes to; called also for answers that come after the decision, and again while it is
   *   "quarantined"
   * @param decide called after each answer; has to decide when all have come
   */
  run(
    answered: (voter: Voter, reply: Reply, reading: ClockReading) => NodeVote["vote"],
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
        const count = (reply: Reply, reading: ClockReading): void => {
          const vote = answered(voter, reply, reading);
          if (vote === "quarantined") {
            this.#uncounted.set(voter, () => count(reply, reading));
          }
          heard(vote, reply, vote === "quarantined" ? this.#hold.whyNot(voter, reading) : null);
        };
        const failed = (error: unknown): void => {
          this.#errors.push(error);
          const reason = messageOf(error);
          heard(outcomeOf(error) === "unknown" ? "timeout" : "error", undefined, reason);
        };
        const question: Operation = {
          keys: this.#hold.keys,
          args: this.#args,
          answered: (reply) => {
            const value = reply.value as unknown[];
            if (value[0] === "error") {
              failed(refusalBy(String(value[1])));
            } else {
              this.#countAgain();
              count(reply, readingOf(reply.serverMicros, reply.sent.now, this.#hold.now()));
            }
          },
          failed,
        };
        voter.node.perform(question);
      }
    });
  }

  #countAgain(): void {
    const counts = [...this.#uncounted.values()];
    this.#uncounted.clear();
    for (const count of counts) {
      count();
    }
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
