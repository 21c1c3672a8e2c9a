import type { RunHistory } from "./attempts.ts";
import type { Instant } from "./history.ts";

/** A broken rule, and its time. */
export interface Violation {
  readonly rule: RuleName;
  readonly at: Instant;
  readonly key: string | null;
  readonly text: string;
  /** Lines that help to explain the violation. */
  readonly evidence?: readonly string[];
}

export type RuleName =
  | "exclusion"
  | "votes"
  | "multi-lock"
  | "reentry"
  | "tokens"
  | "attempts"
  | "resource"
  | "count"
  | "latch"
  | "waits"
  | "loss-notice"
  | "quiet-period"
  | "residue"
  | "memory"
  | "unhandled-error";

export interface Rule {
  readonly name: RuleName;
  readonly description: string;
  readonly check: (run: RunHistory) => Violation[];
}
