import type { Redis } from "ioredis";
import type { Ports } from "../contestants/contestant.ts";
import type { Placement } from "../run/placement.ts";
import type { ContestantName, Topology } from "../run/contestant-list.ts";
import type { SuiteName } from "../report/suite-names.ts";

/** One question, asked of every entrant in turn. */
export interface Suite extends SuiteDescription {
  /** The topology of the suite: one server, or the nodes of a quorum. */
  readonly topology: Topology;
  /** Yields once per case. Throws if the entrant cannot take part. */
  measure(contestant: ContestantName, site: Site): AsyncGenerator<Figures, void, void>;
}

/** What a report says of a suite. It is recorded beside the figures, so that tables and pictures can be made again. */
export interface SuiteDescription {
  readonly name: SuiteName;
  readonly title: string;
  /** In a sentence: who does what, for how long. */
  readonly method: string;
  readonly contestants: readonly ContestantName[];
  /** The contestants that cannot run the suite, with the reason. */
  readonly absent: readonly MissingContestants[];
  /** Whom the others are compared with, beside the best peer. */
  readonly reference: ContestantName | null;
  readonly rounds: number;
  /** In the order of the report. */
  readonly cases: readonly string[];
  readonly metrics: readonly Metric[];
  /** What its picture shows of each case, from left to right. */
  readonly panels: readonly Panel[];
}

export interface MissingContestants {
  readonly contestants: readonly ContestantName[];
  readonly reason: string;
}

/** One drawing of one case; all metrics by their ids. */
export type Panel =
  | { readonly form: "bars"; readonly metric: string }
  /** From the first metric to the last: a dot, a line, and a mark for each of the others. */
  | {
      readonly form: "spans";
      readonly scale: "linear" | "log";
      readonly label: string;
      readonly metrics: readonly [string, string, ...string[]];
    }
  /** Over the time of the case, from zero. */
  | { readonly form: "curves"; readonly label: string; readonly series: string };

/** Where a suite takes place. */
export interface Site {
  readonly placement: Placement;
  /** One, or the nodes of a quorum. */
  readonly servers: readonly [Server, ...Server[]];
  /** Of nodes that are down: whoever connects there is refused. */
  readonly deadPorts: readonly number[];
}

/** A server under load, and a connection to ask it with. */
export interface Server {
  readonly port: number;
  readonly admin: Redis;
}

export function portsOf({ servers: [first, ...others], deadPorts }: Site): Ports {
  return [first.port, ...others.map(({ port }) => port), ...deadPorts];
}

/** The same with only so many of its servers. */
export function firstServers({ servers: [first, ...others], ...site }: Site, count: number): Site {
  return { ...site, servers: [first, ...others.slice(0, count - 1)] };
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
  /** What was seen again and again while the case ran, by the name of a panel's series: points of seconds and value. */
  readonly series?: Readonly<Record<string, readonly Point[]>>;
  readonly failures: number;
  readonly firstFailure: string | null;
}

export type Point = readonly [x: number, y: number];

export interface Sample extends Figures {
  readonly suite: SuiteName;
  readonly contestant: ContestantName;
  readonly round: number;
}

/** Why an entrant is missing from a table, or what went wrong while it ran. */
export interface Note {
  readonly suite: SuiteName;
  readonly contestant: ContestantName;
  readonly text: string;
}
