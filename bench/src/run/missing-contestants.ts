import type { ContestantName } from "./contestant-list.ts";

/** The contestants that cannot run a suite, with the reason. */
export interface MissingContestants {
  readonly contestants: readonly ContestantName[];
  readonly reason: string;
}

export const noQuorum: readonly MissingContestants[] = [
  { contestants: ["raw", "@verrou/core"], reason: "locks one server only" },
];
