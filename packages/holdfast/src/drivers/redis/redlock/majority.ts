import type { VoteState } from "./vote.ts";
import type { Validity } from "../../../validity.ts";

/**
 * The outcome of a try. `open`: a majority is still possible, or replies are outstanding. `held`: another attempt has a majority.
 * `split`: no attempt has a majority. `unanswered`: too few nodes have replied to decide.
 */
type TryOutcome = "open" | "held" | "split" | "unanswered";

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

/** ⌊N/2⌋ + 1 of all N nodes, whether they answer or not: any two majorities have a node in common. */
export function majorityOf(nodeCount: number): number {
  return Math.floor(nodeCount / 2) + 1;
}

/** The fencing numbers of a grant: one number, or a range that counts only as a whole. */
export interface FencingRange {
  readonly first: number;
  readonly last: number;
}

/** A range as reported by one node in one round. */
export interface NodeReport extends FencingRange {
  readonly round: number;
}

/**
 * The rule of agreement: a fencing token is the range that a majority reported in the same round. Only equal ranges count, because a
 * node with a greater number has not agreed.
 */
export function agreedRange(reports: readonly NodeReport[], majority: number): FencingRange | undefined {
  return reports.find((one) => reports.filter((other) => isSame(one, other)).length >= majority);
}

function isSame(one: NodeReport, other: NodeReport): boolean {
  return one.first === other.first && one.last === other.last && one.round === other.round;
}

/** The longest validity that a majority shares. Needs at least `majority` validities. */
export function validityOf(validities: readonly Validity[], majority: number): Validity {
  const latestEnds =
    validities.length === majority
      ? validities
      : [...validities].sort((a, b) => b.until - a.until).slice(0, majority);
  const validity = { until: Infinity, untilWall: Infinity };
  for (const { until, untilWall } of latestEnds) {
    validity.until = Math.min(validity.until, until);
    validity.untilWall = Math.min(validity.untilWall, untilWall);
  }
  return validity;
}

/** The largest value that a majority reaches: the value at rank `majority`, sorted from the largest. */
export function majorityReached(values: readonly number[], majority: number): number | undefined {
  return [...values].sort((a, b) => b - a)[majority - 1];
}

/** The middle value, or the mean of the two middle values. */
export function medianOf(values: readonly number[]): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[sorted.length >> 1];
  const lower = sorted[(sorted.length - 1) >> 1];
  return upper === undefined || lower === undefined ? undefined : (lower + upper) / 2;
}
