import type { Validity } from "../../../validity.ts";

/** ⌊N/2⌋ + 1 of all N nodes, whether they answer or not: any two majorities have a node in common. */
export function majorityOf(nodeCount: number): number {
  return Math.floor(nodeCount / 2) + 1;
}

/** The fencing numbers of a grant: one, or a block that counts only as a whole. */
export interface FencingRange {
  readonly first: number;
  readonly last: number;
}

/** A block as one node reported it, and in which round. */
export interface NodeReport extends FencingRange {
  readonly round: number;
}

/**
 * The agreement rule: a token is what a majority reported in the same round. Only equal values count: a node whose number is
 * already above has not said yes.
 */
export function agreedRange(reports: readonly NodeReport[], majority: number): FencingRange | undefined {
  return reports.find((one) => reports.filter((other) => isSame(one, other)).length >= majority);
}

function isSame(one: NodeReport, other: NodeReport): boolean {
  return one.first === other.first && one.last === other.last && one.round === other.round;
}

/** The largest time until which a majority is valid. There have to be so many. */
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

/** What a majority reaches at least: the value in the place `majority` when sorted from the largest. */
export function majorityReached(values: readonly number[], majority: number): number | undefined {
  return [...values].sort((a, b) => b - a)[majority - 1];
}

/** The middle value; of an even number of them the mean of the two. */
export function medianOf(values: readonly number[]): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[sorted.length >> 1];
  const lower = sorted[(sorted.length - 1) >> 1];
  return upper === undefined || lower === undefined ? undefined : (lower + upper) / 2;
}
