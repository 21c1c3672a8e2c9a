import type { Clock } from "../../../runtime/clock.ts";
import { tell, type CountedVote } from "../../../diagnostics.ts";
import type { Grant } from "../../../driver.ts";
import { leftOf, type Validity } from "../../../validity.ts";
import type { Bid, Election } from "./majority-attempt.ts";
import type { Voter } from "./quorum-node.ts";

// What diagnostics tell of votes. Nothing is made of them where nobody listens.

export function tellElection({ key, fencingToken }: Grant, { rounds, ballots }: Election, bid: Bid): void {
  tell("vote", () => ({
    key,
    fencingToken,
    rounds,
    granted: ballots.length,
    nodes: bid.ballots.length,
    votes: ballots.map(({ voter, vote }) => countedVote(voter, vote, bid.clock)),
  }));
}

export function countedVote(
  { name }: Voter,
  { runId, isPushed, validity }: { runId: string; isPushed: boolean; validity: Validity },
  clock: Clock,
): CountedVote {
  return { node: name, runId, by: isPushed ? "message" : "answer", remainingMs: leftOf(validity, clock) };
}
