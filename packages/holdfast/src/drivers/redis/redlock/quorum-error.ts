import { QuorumError, type NodeVote } from "../../../errors.ts";
import { engineError, isTransient, queueFullError } from "../server/errors.ts";
import type { Ballot } from "./vote-request.ts";
import type { Bid } from "./majority-attempt.ts";
import type { Electorate } from "./node-set.ts";
import { quarantineWords } from "./restart-guard.ts";

/**
 * That too few nodes voted for a key, with what each of them said.
 * @param bid undefined: none was asked yet
 */
export function noQuorum(
  electorate: Electorate,
  key: string,
  bid: Bid | undefined,
  retryable = true,
): QuorumError {
  const ballots = bid?.ballots ?? [];
  const votes = electorate.voters.map(({ name, index }): NodeVote => {
    const ballot = ballots[index];
    return ballot ? said(ballot) : { node: name, vote: "timeout", latencyMs: null, reason: "not asked yet" };
  });
  const outcome = bid?.outcome ?? "none";
  const cause = ballots.find(({ error }) => error !== undefined)?.error;
  const retryAfterMs = electorate.votesAgainInMs();
  return new QuorumError({ key, votes, outcome, retryable, retryAfterMs, cause });
}

/** What is told where so many nodes refuse that there can be no majority. Undefined: it may come yet. */
export function refusalOf(bid: Bid, key: string): unknown {
  const { ballots, electorate } = bid;
  const most = ballots.length - electorate.majority;
  const hopeless = ballots.filter(isHopeless);
  if (hopeless.length > most) {
    return refusedForGood(hopeless, noQuorum(electorate, key, bid, false));
  }
  return ballots.filter(({ answer }) => answer === "full").length > most ? queueFullError(key) : undefined;
}

function said({ voter, answer, latencyMs, reason, quarantine, isWaiting }: Ballot): NodeVote {
  const node = voter.name;
  if (answer === "granted" && quarantine?.isMomentary === false) {
    return { node, vote: "quarantined", latencyMs, reason: quarantineWords(quarantine) };
  } else if (answer === "granted" && isWaiting) {
    return {
      node,
      vote: "held",
      latencyMs,
      reason: "somebody before was not released, and may hold it still",
    };
  } else if (answer === "asked") {
    return { node, vote: "timeout", latencyMs, reason: reason ?? "not answered yet" };
  }
  return answer === "full"
    ? { node, vote: "held", latencyMs, reason: "its queue is full" }
    : { node, vote: answer, latencyMs, reason };
}

/** Nobody asks it with success until somebody changes something. */
function isHopeless({ answer, error }: Ballot): boolean {
  return error !== undefined && answer === "error" && !isTransient(error);
}

/** What is wrong where all say the same of the key, else that there is no quorum. */
function refusedForGood(hopeless: readonly Ballot[], quorumError: QuorumError): unknown {
  const error = engineError(hopeless[0]?.error, quorumError.key, "none");
  return error.code === "kind-mismatch" ? error : quorumError;
}

/** An error of the nodes, told of one key. */
export function aboutKey(error: unknown, key: string): unknown {
  return error instanceof QuorumError ? error.about(key) : error;
}
