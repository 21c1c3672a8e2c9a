import type { Redis } from "ioredis";
import type { Ports } from "./contestant.ts";
import type { Placement } from "./placement.ts";
import type { Entrant, Ground } from "./roster.ts";

/** One question, asked of every entrant in turn. */
export interface Suite {
  readonly name: SuiteName;
  readonly title: string;
  /** In a sentence: who does what, for how long. */
  readonly method: string;
  readonly entrants: readonly Entrant[];
  /** Whom the others are compared with, beside the best peer. */
  readonly reference: Entrant | null;
  /** What it runs on: one server, or nodes that vote. */
  readonly ground: Ground;
  readonly rounds: number;
  /** In the order of the report. */
  readonly cases: readonly string[];
  readonly metrics: readonly Metric[];
  /** Yields once per case. Throws if the entrant cannot take part. */
  measure(entrant: Entrant, site: Site): AsyncGenerator<Figures, void, void>;
}

export const suiteNames = [
  "uncontended",
  "hot",
  "renewals",
  "takeover",
  "read-write",
  "semaphore",
  "command-line",
  "redlock-uncontended",
  "redlock-hot",
] as const;
export type SuiteName = (typeof suiteNames)[number];

/** Where a suite takes place. */
export interface Site {
  readonly placement: Placement;
  /** One, or the nodes of a quorum. */
  readonly servers: readonly [Server, ...Server[]];
}

/** A server under load, and a connection to ask it with. */
export interface Server {
  readonly port: number;
  readonly admin: Redis;
}

export function portsOf({ servers: [first, ...others] }: Site): Ports {
  return [first.port, ...others.map(({ port }) => port)];
}

/** The same with only so many of its servers. */
export function firstServers({ servers: [first, ...others], placement }: Site, count: number): Site {
  return { placement, servers: [first, ...others.slice(0, count - 1)] };
}

export interface Metric {
  readonly id: string;
  readonly label: string;
  readonly digits: number;
  /** Given where ratios to the reference and to the best peer make sense; says which way is best. */
  readonly best?: "most" | "least";
  /** The other metric, by its id, of whose best peer this one is told as a multiple. */
  readonly against?: string;
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
