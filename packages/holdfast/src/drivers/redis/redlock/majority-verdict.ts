import type { VoteState } from "./vote-state.ts";

/**
 * The outcome of a try. `open`: a majority is still possible, or replies are outstanding. `held`: another attempt has a majority.
 * `split`: no attempt has a majority. `unanswered`: too few nodes have replied to decide.
 */
export type TryOutcome = "open" | "held" | "split" | "unanswered";

export function outcomeOfTry(voteRequests: readonly VoteState[], majority: number): TryOutcome {
  const pending = voteRequests.filter(({ isPending }) => isPending).length;
  const waiting = voteRequests.filter(({ isWaiting }) => isWaiting).length;
  const granted = voteRequests.filter(({ vote }) => vote !== undefined).length - waiting;
  if (granted + pending >= majority) {
    return "open";
  } else if (competingVotes(voteRequests) + waiting >= majority) {
    return "held";
  } else if (pending > 0) {
    return "open";
  }
  const held = voteRequests.filter(({ reply }) => reply === "held").length;
  return granted + waiting + held >= majority ? "split" : "unanswered";
}

/** The largest number of votes of any other attempt. */
export function competingVotes(voteRequests: readonly VoteState[]): number {
  const votes = new Map<string, number>();
  for (const { reply, holder } of voteRequests) {
    if (reply === "held") {
      votes.set(holder, (votes.get(holder) ?? 0) + 1);
    }
  }
  return Math.max(0, ...votes.values());
}

/** The median of the queue positions that the nodes report. */
export function positionIn(voteRequests: readonly VoteState[]): number | undefined {
  const positions = voteRequests.map(({ position }) => position).filter((position) => position !== undefined);
  return positions.sort((a, b) => a - b)[positions.length >> 1];
}
