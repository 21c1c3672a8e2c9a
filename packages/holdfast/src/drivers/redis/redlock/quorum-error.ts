import { QuorumError, type NodeVote } from "../../../errors.ts";
import { engineError, isTransient, messageOf, queueFullError } from "../server/errors.ts";
import type { VoteState } from "./vote.ts";
import type { MajorityAttempt } from "./majority-attempt.ts";
import type { NodeSet } from "./node-set.ts";
import { quarantineMessage, type Quarantine } from "./restart-guard.ts";

/**
 * The error for too few votes, with the vote of each node.
 * @param attempt undefined: no request was sent yet
 */
export function quorumNotReached(
  nodeSet: NodeSet,
  key: string,
  attempt: MajorityAttempt | undefined,
  retryable = true,
): QuorumError {
  const voteRequests = attempt?.voteRequests ?? [];
  const votes = nodeSet.nodes.map(({ name, index, server }): NodeVote => {
    const voteRequest = voteRequests[index];
    if (voteRequest) {
      return nodeVote(voteRequest);
    }
    const failure = server.connection.failure?.();
    const reason = failure === undefined ? "no request sent yet" : `unreachable: ${messageOf(failure)}`;
    return { node: name, vote: "timeout", latencyMs: null, reason };
  });
  const outcome = attempt?.outcome ?? "none";
  const cause = voteRequests.find(({ error }) => error !== undefined)?.error;
  const retryAfterMs = nodeSet.votesAgainInMs();
  return new QuorumError({ key, votes, outcome, retryable, retryAfterMs, cause });
}

/** The error if too many nodes refuse for a majority; undefined: a majority is still possible. */
export function refusalOf(attempt: MajorityAttempt, key: string): unknown {
  const { voteRequests, nodeSet } = attempt;
  const tolerated = voteRequests.length - nodeSet.majority;
  const hopeless = voteRequests.filter(isHopeless);
  if (hopeless.length > tolerated) {
    return permanentRefusal(hopeless, quorumNotReached(nodeSet, key, attempt, false));
  }
  return voteRequests.filter(({ reply }) => reply === "full").length > tolerated
    ? queueFullError(key)
    : undefined;
}

function nodeVote({
  node: quorumNode,
  reply,
  latencyMs,
  reason,
  quarantine,
  isWaiting,
}: VoteState): NodeVote {
  const node = quorumNode.name;
  if (reply === "granted" && quarantine && isReported(quarantine)) {
    return { node, vote: "quarantined", latencyMs, reason: quarantineMessage(quarantine) };
  } else if (reply === "granted" && isWaiting) {
    return {
      node,
      vote: "held",
      latencyMs,
      reason: "an earlier holder was not released, and may rely on its lease",
    };
  } else if (reply === "asked") {
    return { node, vote: "timeout", latencyMs, reason: reason ?? "no reply yet" };
  }
  return reply === "full"
    ? { node, vote: "held", latencyMs, reason: "its queue is full" }
    : { node, vote: reply, latencyMs, reason };
}

/** A momentary quarantine without a known end, such as a clock that too few replies show, may end with the next reply. */
function isReported({ isMomentary, remainingMs }: Quarantine): boolean {
  return !isMomentary || remainingMs !== null;
}

/** A retry to the node fails until an operator changes the node. */
function isHopeless({ reply, error }: VoteState): boolean {
  return error !== undefined && reply === "error" && !isTransient(error);
}

/** A wrong kind of the key has its own error. Any other refusal means that the quorum is not reached. */
function permanentRefusal(hopeless: readonly VoteState[], quorumError: QuorumError): unknown {
  const error = engineError(hopeless[0]?.error, quorumError.key, "none");
  return error.code === "kind-mismatch" ? error : quorumError;
}

/** An error of the nodes, with a key. */
export function withKey(error: unknown, key: string): unknown {
  return error instanceof QuorumError ? error.forKey(key) : error;
}
