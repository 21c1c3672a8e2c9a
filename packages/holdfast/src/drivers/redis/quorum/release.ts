import type { LockKeys } from "../keys.ts";
import type { Electorate } from "./electorate.ts";
import { outcomeOf } from "../failures.ts";
import { QuorumError, type NodeVote } from "../../../errors.ts";
import type { Voter } from "./voter.ts";

/** A grant to give back, on the nodes that may have it. */
export interface QuorumLeftover {
  readonly key: string;
  readonly keys: LockKeys;
  readonly token: string;
  /** What our queue member says after the token, by node. */
  readonly terms: readonly string[];
  readonly voters: ReadonlySet<Voter>;
  /** When the nodes will have forgotten it by themselves, on the scale of `clock.now()`. */
  readonly until: number;
}

/**
 * Releases on all nodes that may have it, and goes on behind the decision until each has answered or forgotten.
 * @returns whether a majority still had it; rejects with a `QuorumError` after the budget where too few answer
 */
export function releaseByMajority(electorate: Electorate, leftover: QuorumLeftover): Promise<boolean> {
  const { majority } = electorate;
  const { key, keys, token, terms, voters, until } = leftover;
  const candidate = electorate.candidate();
  const votes: NodeVote[] = electorate.voters.map(({ name }) => ({
    node: name,
    vote: "held",
    latencyMs: null,
    reason: null,
  }));
  let pending = voters.size;
  let had = 0;
  let hadNot = electorate.voters.length - voters.size;
  return new Promise((resolve, reject) => {
    const decide = (): void => {
      if (had >= majority) {
        resolve(true);
      } else if (hadNot > electorate.voters.length - majority) {
        resolve(false);
      } else if (pending === 0) {
        reject(new QuorumError({ key, votes, outcome: "unknown", retryable: true }));
      }
    };
    decide();
    for (const voter of voters) {
      voter.releaser
        .release({ key, keys, token, terms: terms[voter.index] ?? "", until, candidate })
        .then(
          (released) => {
            votes[voter.index] = { node: voter.name, vote: "granted", latencyMs: null, reason: null };
            had += released ? 1 : 0;
            hadNot += released ? 0 : 1;
          },
          (error: unknown) => {
            const vote = outcomeOf(error) === "unknown" ? "timeout" : "error";
            votes[voter.index] = { node: voter.name, vote, latencyMs: null, reason: String(error) };
          },
        )
        .finally(() => {
          pending -= 1;
          decide();
        });
    }
  });
}
