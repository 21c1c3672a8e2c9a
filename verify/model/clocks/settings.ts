export interface ClocksSettings {
  /** How far each node's clock is ahead at first, in units of D. Clocks that are not set keep this. */
  readonly ahead: readonly number[];
  /** How many of the nodes, from the first on, may have their clocks set: less than half. */
  readonly settable: number;
  /** How often a clock is set, in all. */
  readonly sets: number;
  /** How often a node's key disappears before its end, in all. */
  readonly evictions: number;
  /** How many answers of votes are lost, in all. */
  readonly losses: number;
  /** How many requests come when their attempts need them no more. */
  readonly late: number;
  readonly attempts: number;
  /** How long it goes on, in units of D. */
  readonly lasts: number;
  readonly mutant?: ClocksMutant | undefined;
}

export type ClocksMutant =
  | "no-wait"
  | "wait-of-1-d"
  | "wait-of-2-d"
  | "off-clocks-vote"
  | "release-lowers-wait"
  | "repeat-without-wait"
  | "late-request-ends-memory";

export const defaultClocks: ClocksSettings = {
  ahead: [-1, 0, 1],
  settable: 1,
  sets: 1,
  evictions: 0,
  losses: 0,
  late: 0,
  attempts: 2,
  lasts: 3,
};
