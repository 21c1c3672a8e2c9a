import type { Clock } from "../../../runtime/clock.ts";
import { publish, type CountedVote } from "../../../diagnostics.ts";
import type { Grant } from "../../../driver.ts";
import { remainingValidityMs, type Validity } from "../../../validity.ts";
import type { MajorityAttempt, MajorityGrant } from "./majority-attempt.ts";
import type { QuorumNode } from "./quorum-node.ts";

// What diagnostics tell of votes. Nothing is made of them where nobody listens.

export function publishVote(
  { key, fencingToken }: Grant,
  { rounds, voteRequests }: MajorityGrant,
  attempt: MajorityAttempt,
): void {
  publish("vote", () => ({
    key,
    fencingToken,
    rounds,
    granted: voteRequests.length,
    nodes: attempt.voteRequests.length,
    votes: voteRequests.map(({ node, vote }) => countedVote(node, vote, attempt.clock)),
  }));
}

export function countedVote(
  { name }: QuorumNode,
  { runId, isNotified, validity }: { runId: string; isNotified: boolean; validity: Validity },
  clock: Clock,
): CountedVote {
  return {
    node: name,
    runId,
    via: isNotified ? "notification" : "reply",
    remainingMs: remainingValidityMs(validity, clock),
  };
}
