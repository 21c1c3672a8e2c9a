export interface ClocksSettings {
  /** The lead of each node's clock at first, in units of D. Clocks that are not set keep their lead. */
  readonly ahead: readonly number[];
  /** The number of nodes whose clocks may be set, from the first node on: less than half. */
  readonly settable: number;
  /** The total number of clock settings. */
  readonly sets: number;
  /** The total number of keys that disappear before their end. */
  readonly evictions: number;
  /** The total number of lost replies with votes. */
  readonly losses: number;
  /** The number of requests that a node executes after their attempts have ended. */
  readonly late: number;
  readonly attempts: number;
  /** The duration, in units of D. */
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
