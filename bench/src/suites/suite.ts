import type { Redis } from "ioredis";
import type { Ports } from "../contestants/contestant.ts";
import { isEngine, type Engine } from "../engines/engine.ts";
import type { ServerStats } from "../measure/server-stats.ts";
import type { Placement } from "../run/placement.ts";
import type { ContestantName, RedisTopology, Topology } from "../run/contestant-list.ts";
import type { MissingContestants } from "../run/missing-contestants.ts";
import type { SuiteName } from "../report/suite-names.ts";

/** One measurement, which every contestant runs in turn. */
export type Suite = RedisSuite | EngineSuite;
export type RedisSuite = SuiteOn<RedisTopology, Site>;
export type EngineSuite = SuiteOn<Engine, EngineSite>;

interface SuiteOn<Where extends Topology, At> extends SuiteDescription {
  /** One Redis server, the nodes of a quorum, or a server of another engine. */
  readonly topology: Where;
  /** Yields once for each case. Throws if the contestant cannot take part. */
  measure(contestant: ContestantName, site: At): AsyncGenerator<Figures, void, void>;
}

export function isOnEngine(suite: Suite): suite is EngineSuite {
  return isEngine(suite.topology);
}

/** The description of a suite in a report. */
export interface SuiteDescription {
  readonly name: SuiteName;
  readonly title: string;
  /** The load and its duration, in a few words. */
  readonly method: string;
  readonly contestants: readonly ContestantName[];
  /** The contestants that cannot run the suite, with the reason. */
  readonly absent: readonly MissingContestants[];
  /** The contestant with which the others are compared, in addition to the best peer. */
  readonly reference: ContestantName | null;
  readonly rounds: number;
  /** In the order of the report. */
  readonly cases: readonly string[];
  readonly metrics: readonly Metric[];
  /** The panels of each case in the chart, from left to right. */
  readonly panels: readonly Panel[];
}

/** One drawing of one case. Metrics are named by their ids. */
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

/** The Redis servers of a suite, and their placement. */
export interface Site {
  readonly placement: Placement;
  /** One server, or the nodes of a quorum. */
  readonly servers: readonly [Server, ...Server[]];
  /** The ports of nodes that are down. These ports refuse connections. */
  readonly deadPorts: readonly number[];
}

/** The server of another engine, and its placement. */
export interface EngineSite {
  readonly placement: Placement;
  readonly engine: Engine;
  /** The URL or `host:port` for clients. */
  readonly address: string;
  readStats(): Promise<ServerStats>;
}

/** A Redis server under load, with an admin connection. */
export interface Server {
  readonly port: number;
  readonly admin: Redis;
}

export function portsOf({ servers: [first, ...others], deadPorts }: Site): Ports {
  return [first.port, ...others.map(({ port }) => port), ...deadPorts];
}

/** The site with only its first `count` servers. */
export function firstServers({ servers: [first, ...others], ...site }: Site, count: number): Site {
  return { ...site, servers: [first, ...others.slice(0, count - 1)] };
}

export interface Metric {
  readonly id: string;
  readonly label: string;
  readonly digits: number;
  /**
   * Whether the largest or the smallest value is best. Only a metric with `best` has ratios to the reference and to the best peer.
   */
  readonly best?: "most" | "least";
  /** The id of another metric. The value is also reported as a multiple of the best peer's value of that metric. */
  readonly against?: string;
}

export interface Figures {
  readonly case: string;
  readonly settings: string;
  /** By the id of the metric. */
  readonly values: Readonly<Record<string, number>>;
  readonly series?: Series;
  readonly failures: number;
  readonly firstFailure: string | null;
}

/** Samples from the run of a case: their times in `seconds`, and as many values under the name of each panel's series. */
export type Series = Readonly<Record<string, readonly number[]>>;

export interface Sample extends Figures {
  readonly suite: SuiteName;
  readonly contestant: ContestantName;
  readonly round: number;
}

/** Why a contestant is missing from a table, or what failed during its run. */
export interface Note {
  readonly suite: SuiteName;
  readonly contestant: ContestantName;
  readonly text: string;
}
