import type { Validity } from "../../../validity.ts";

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
