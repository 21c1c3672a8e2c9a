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
  /** The fix, as a command. */
  readonly command?: string | undefined;
}

/** Whether a level is as severe as another, or worse. */
export function isAtLeast(level: Level, other: Level): boolean {
  return levels.indexOf(level) <= levels.indexOf(other);
}

/** The findings, the worst first. */
export function sortFindings(findings: readonly Finding[]): Finding[] {
  return findings.toSorted((a, b) => levels.indexOf(a.level) - levels.indexOf(b.level));
}

/** The durations of operations on a lock, ms. */
export interface Probe {
  readonly roundTripP50: number | null;
  readonly roundTripP99: number | null;
  readonly acquire: number;
  readonly renew: number;
  readonly handover: number;
  readonly release: number;
}

/** The checked nodes and the findings, the worst first. */
export interface Diagnosis {
  /** The kind of the deployment, or the engine. */
  readonly topology: string;
  readonly nodes: readonly string[];
  readonly findings: readonly Finding[];
  /** Absent or null: no probe, or a failed one. */
  readonly probe?: Probe | null | undefined;
}
