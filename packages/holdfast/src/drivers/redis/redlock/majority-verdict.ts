import type { VoteState } from "./vote-state.ts";

/**
 * What the answers to a try come to, as soon as its majority is impossible: a rival has one, nobody has, or too few nodes have said
 * who has their vote. Open: more is to be heard.
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

/** How many nodes one rival has at the most. */
export function competingVotes(voteRequests: readonly VoteState[]): number {
  const votes = new Map<string, number>();
  for (const { reply, holder } of voteRequests) {
    if (reply === "held") {
      votes.set(holder, (votes.get(holder) ?? 0) + 1);
    }
  }
  return Math.max(0, ...votes.values());
}

/** Our place as most of the nodes that queued us have it. */
export function positionIn(voteRequests: readonly VoteState[]): number | undefined {
  const positions = voteRequests.map(({ position }) => position).filter((position) => position !== undefined);
  return positions.sort((a, b) => a - b)[positions.length >> 1];
}
