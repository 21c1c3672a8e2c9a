/** The levels of findings, the worst first. `critical`: a lock can have two holders, or be lost. `risk`: the same, after a failure. */
export const levels = ["critical", "risk", "perf", "info"] as const;
export type Level = (typeof levels)[number];

/** A problem of a deployment, and its effect on locks. */
export interface Finding {
  readonly level: Level;
  readonly id: string;
  readonly node: string;
  /** The observed fact. */
  readonly observed: string;
  /** The effect on locks. */
  readonly impact: string;
  /** The fix, in words. */
  readonly fix: string;
  readonly command?: string;
}

/** Whether a level is as severe as another, or worse. */
export function isAtLeast(level: Level, other: Level): boolean {
  return levels.indexOf(level) <= levels.indexOf(other);
}
