/** How bad a finding is, the worst first. `critical`: a lock can be held twice, or be lost. `risk`: so under a failure. */
export const levels = ["critical", "risk", "perf", "info"] as const;
export type Level = (typeof levels)[number];

/** What is wrong with a deployment, and why that matters to a lock. */
export interface Finding {
  readonly level: Level;
  readonly id: string;
  readonly node: string;
  /** What was seen. */
  readonly observed: string;
  /** What it does to a lock. */
  readonly impact: string;
  /** What to do, and where there is one the command that does it. */
  readonly fix: string;
  readonly command?: string;
}

/** Whether a level is as bad as another, or worse. */
export function isAtLeast(level: Level, other: Level): boolean {
  return levels.indexOf(level) <= levels.indexOf(other);
}
