import type { Clock } from "../../../runtime/clock.ts";
import { publish, type CountedVote } from "../../../diagnostics.ts";
import type { Grant } from "../../../driver.ts";
import { remainingValidityMs, type Validity } from "../../../validity.ts";
import type { MajorityGrant } from "./majority-attempt.ts";
import type { QuorumNode } from "./quorum-node.ts";

// The votes in diagnostics. Without a subscriber, no object is created.

export function publishVote(
  { key, fencingToken }: Grant,
  { rounds, votes }: MajorityGrant,
  nodeCount: number,
  clock: Clock,
): void {
  publish("vote", () => ({
    key,
    engine: "redlock",
    fencingToken,
    rounds,
    granted: votes.length,
    nodes: nodeCount,
    votes: votes.map(({ node, vote }) => countedVote(node, vote, clock)),
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
