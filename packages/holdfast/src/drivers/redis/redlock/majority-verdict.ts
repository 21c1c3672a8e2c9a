import type { Ballot } from "./vote-request.ts";

/**
 * What the answers to a try come to, as soon as its majority is impossible: a rival has one, nobody has, or too few nodes have said
 * who has their vote. Open: more is to be heard.
 */
export type Verdict = "open" | "held" | "split" | "unheard";

export function verdictOnTry(ballots: readonly Ballot[], majority: number): Verdict {
  const pending = ballots.filter(({ isPending }) => isPending).length;
  const waiting = ballots.filter(({ isWaiting }) => isWaiting).length;
  const ours = ballots.filter(({ vote }) => vote !== undefined).length - waiting;
  if (ours + pending >= majority) {
    return "open";
  } else if (rivalsShare(ballots) + waiting >= majority) {
    return "held";
  } else if (pending > 0) {
    return "open";
  }
  const held = ballots.filter(({ answer }) => answer === "held").length;
  return ours + waiting + held >= majority ? "split" : "unheard";
}

/** How many nodes one rival has at the most. */
export function rivalsShare(ballots: readonly Ballot[]): number {
  const shares = new Map<string, number>();
  for (const { answer, holder } of ballots) {
    if (answer === "held") {
      shares.set(holder, (shares.get(holder) ?? 0) + 1);
    }
  }
  return Math.max(0, ...shares.values());
}

/** Our place as most of the nodes that queued us have it. */
export function positionIn(ballots: readonly Ballot[]): number | undefined {
  const positions = ballots.map(({ position }) => position).filter((position) => position !== undefined);
  return positions.sort((a, b) => a - b)[positions.length >> 1];
}
