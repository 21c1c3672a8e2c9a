import { QuorumError, type NodeVote } from "../../../errors.ts";
import { engineError, isTransient, queueFullError } from "../server/errors.ts";
import type { VoteState } from "./vote-state.ts";
import type { MajorityAttempt } from "./majority-attempt.ts";
import type { NodeSet } from "./node-set.ts";
import { quarantineMessage } from "./restart-guard.ts";

/**
 * That too few nodes voted for a key, with what each of them said.
 * @param attempt undefined: none was asked yet
 */
export function quorumNotReached(
  nodeSet: NodeSet,
  key: string,
  attempt: MajorityAttempt | undefined,
  retryable = true,
): QuorumError {
  const voteRequests = attempt?.voteRequests ?? [];
  const votes = nodeSet.nodes.map(({ name, index }): NodeVote => {
    const voteRequest = voteRequests[index];
    return voteRequest
      ? nodeVote(voteRequest)
      : { node: name, vote: "timeout", latencyMs: null, reason: "not asked yet" };
  });
  const outcome = attempt?.outcome ?? "none";
  const cause = voteRequests.find(({ error }) => error !== undefined)?.error;
  const retryAfterMs = nodeSet.votesAgainInMs();
  return new QuorumError({ key, votes, outcome, retryable, retryAfterMs, cause });
}

/** What is told where so many nodes refuse that there can be no majority. Undefined: it may come yet. */
export function refusalOf(attempt: MajorityAttempt, key: string): unknown {
  const { voteRequests, nodeSet } = attempt;
  const reply = voteRequests.length - nodeSet.majority;
  const hopeless = voteRequests.filter(isHopeless);
  if (hopeless.length > reply) {
    return permanentRefusal(hopeless, quorumNotReached(nodeSet, key, attempt, false));
  }
  return voteRequests.filter(({ reply }) => reply === "full").length > reply
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
  if (reply === "granted" && quarantine?.isMomentary === false) {
    return { node, vote: "quarantined", latencyMs, reason: quarantineMessage(quarantine) };
  } else if (reply === "granted" && isWaiting) {
    return {
      node,
      vote: "held",
      latencyMs,
      reason: "somebody before was not released, and may hold it still",
    };
  } else if (reply === "asked") {
    return { node, vote: "timeout", latencyMs, reason: reason ?? "not answered yet" };
  }
  return reply === "full"
    ? { node, vote: "held", latencyMs, reason: "its queue is full" }
    : { node, vote: reply, latencyMs, reason };
}

/** Nobody asks it with success until somebody changes something. */
function isHopeless({ reply, error }: VoteState): boolean {
  return error !== undefined && reply === "error" && !isTransient(error);
}

/** What is wrong where all say the same of the key, else that there is no quorum. */
function permanentRefusal(hopeless: readonly VoteState[], quorumError: QuorumError): unknown {
  const error = engineError(hopeless[0]?.error, quorumError.key, "none");
  return error.code === "kind-mismatch" ? error : quorumError;
}

/** An error of the nodes, told of one key. */
export function withKey(error: unknown, key: string): unknown {
  return error instanceof QuorumError ? error.forKey(key) : error;
}
