/** How bad a finding is, the worst first. `danger`: a lock can be held twice, or be lost. `risk`: so under a failure. */
export const levels = ["danger", "risk", "perf", "info"] as const;
export type Level = (typeof levels)[number];

/** What is wrong with a deployment, and why that matters to a lock. */
export interface Finding {
  readonly level: Level;
  readonly id: string;
  readonly node: string;
  /** What was seen. */
  readonly observed: string;
  /** What it does to a lock. */
  readonly danger: string;
  /** What to do, and where there is one the command that does it. */
  readonly advice: string;
  readonly command?: string;
}

/** Whether a level is as bad as another, or worse. */
export function isAsBadAs(level: Level, other: Level): boolean {
  return levels.indexOf(level) <= levels.indexOf(other);
}
