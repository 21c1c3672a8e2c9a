import type { Redis } from "ioredis";
import type { Placement } from "./placement.ts";
import type { Entrant } from "./roster.ts";

/** One question, asked of every entrant in turn. */
export interface Suite {
  readonly name: SuiteName;
  readonly title: string;
  /** In a sentence: who does what, for how long. */
  readonly method: string;
  readonly entrants: readonly Entrant[];
  /** In the order of the report. */
  readonly cases: readonly string[];
  readonly metrics: readonly Metric[];
  /** Yields once per case. Throws if the entrant cannot take part. */
  measure(entrant: Entrant, site: Site): AsyncGenerator<Figures, void, void>;
}

export const suiteNames = ["uncontended", "hot", "renewals", "takeover"] as const;
export type SuiteName = (typeof suiteNames)[number];

/** The server under load, and a connection to ask it with. */
export interface Site {
  readonly port: number;
  readonly placement: Placement;
  readonly admin: Redis;
}

export interface Metric {
  readonly id: string;
  readonly label: string;
  readonly digits: number;
  /** Given where ratios to raw and to the best peer make sense; says which way is best. */
  readonly best?: "most" | "least";
}

export interface Figures {
  readonly case: string;
  readonly settings: string;
  /** By the id of the metric. */
  readonly values: Readonly<Record<string, number>>;
  readonly failures: number;
  readonly firstFailure: string | null;
}

export interface Sample extends Figures {
  readonly suite: SuiteName;
  readonly entrant: Entrant;
  readonly round: number;
}

/** Why an entrant is missing from a table, or what went wrong while it ran. */
export interface Note {
  readonly suite: SuiteName;
  readonly entrant: Entrant;
  readonly text: string;
}
