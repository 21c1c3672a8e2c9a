import type { LossReason } from "../errors.ts";

/** One instrument. `holdfast/otel`, `holdfast/prometheus` and the lock service use the same instruments. */
export interface Instrument {
  readonly kind: "histogram" | "counter" | "up-down-counter" | "gauge";
  /** A unit of UCUM, as OpenTelemetry names it. */
  readonly unit: "s" | "1" | `{${string}}`;
  readonly description: string;
  /** The names of the attributes. In Prometheus a dot is an underscore. */
  readonly attributes: readonly string[];
  /** The bounds of a histogram's buckets. */
  readonly buckets?: readonly number[];
  /** The attributes beside `group` that start at 0 for each known group. */
  readonly initial?: readonly Attributes[];
}

export type Attributes = Readonly<Record<string, string>>;

/** The names of the instruments, by the rules of OpenTelemetry. */
export type InstrumentName = HistogramName | CounterName | ObservedName;

export type HistogramName =
  | "holdfast.acquire.duration"
  | "holdfast.wait.duration"
  | "holdfast.hold.duration"
  | "holdfast.renew.duration"
  | "holdfast.renew.margin"
  | "holdfast.overrun.duration"
  | "holdfast.quorum.margin";

/** The counters and up-down counters that events change. */
export type CounterName =
  | "holdfast.held"
  | "holdfast.waiting"
  | "holdfast.grants"
  | "holdfast.lost"
  | "holdfast.releases"
  | "holdfast.breaks"
  | "holdfast.leaked"
  | "holdfast.fence.checks"
  | "holdfast.quorum.votes";

/** The instruments that are measured at each collection. */
type ObservedName =
  | "holdfast.node.up"
  | "holdfast.node.clock.offset"
  | "holdfast.node.uptime"
  | "holdfast.node.restarts"
  | "holdfast.timer.lag";

const long = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600,
];
const short = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const fractions = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];

/** The values of `reason`: those of a lost lease. */
const losses: readonly Exclude<LossReason, "released">[] = [
  "expired",
  "stolen",
  "broken",
  "max-hold",
  "engine-unreachable",
  "suspended",
];

/** All instruments. Keys are never attributes: `group` is a group of keys. */
export const instruments: Readonly<Record<InstrumentName, Instrument>> = {
  "holdfast.acquire.duration": {
    kind: "histogram",
    unit: "s",
    description: "Time of each acquire, also of those that fail",
    attributes: ["group", "outcome", "error.type"],
    buckets: short,
    initial: [{ outcome: "acquired" }],
  },
  "holdfast.wait.duration": {
    kind: "histogram",
    unit: "s",
    description: "Time in queues of the acquires that were queued",
    attributes: ["group", "outcome"],
    buckets: long,
    initial: [{ outcome: "acquired" }, { outcome: "wait_timeout" }],
  },
  "holdfast.hold.duration": {
    kind: "histogram",
    unit: "s",
    description: "Time from each grant to its end",
    attributes: ["group", "end"],
    buckets: long,
    initial: [{ end: "released" }],
  },
  "holdfast.held": {
    kind: "up-down-counter",
    unit: "{lease}",
    description: "Leases without an end",
    attributes: ["group", "kind"],
    initial: [{ kind: "mutex" }],
  },
  "holdfast.waiting": {
    kind: "up-down-counter",
    unit: "{waiter}",
    description: "Calls that wait, in the queue of their process or at the engine",
    attributes: ["group", "where"],
    initial: [{ where: "process" }, { where: "engine" }],
  },
  "holdfast.grants": {
    kind: "counter",
    unit: "{grant}",
    description: "Acquires that were granted the lock, by the way of the grant",
    attributes: ["group", "kind", "mode", "via"],
    initial: [{ kind: "mutex", mode: "exclusive", via: "reply" }],
  },
  "holdfast.renew.duration": {
    kind: "histogram",
    unit: "s",
    description: "Time of each renewal",
    attributes: ["group", "outcome"],
    buckets: short,
    initial: [{ outcome: "renewed" }],
  },
  "holdfast.renew.margin": {
    kind: "histogram",
    unit: "1",
    description: "Remaining part of the TTL at the start of each renewal",
    attributes: ["group"],
    buckets: fractions,
    initial: [{}],
  },
  "holdfast.lost": {
    kind: "counter",
    unit: "{lease}",
    description: "Leases that ended without a release",
    attributes: ["group", "reason"],
    initial: losses.map((reason) => ({ reason })),
  },
  "holdfast.overrun.duration": {
    kind: "histogram",
    unit: "s",
    description:
      "Time between the end of a validity and the end of its lease: work may have continued without the lock",
    attributes: ["group"],
    buckets: long,
    initial: [{}],
  },
  "holdfast.releases": {
    kind: "counter",
    unit: "{release}",
    description: "Releases, also of leases that were lost before",
    attributes: ["group", "outcome"],
    initial: [{ outcome: "released" }, { outcome: "not_held" }, { outcome: "error" }],
  },
  "holdfast.breaks": {
    kind: "counter",
    unit: "{break}",
    description: "Grants that an operator has broken",
    attributes: ["group"],
    initial: [{}],
  },
  "holdfast.leaked": {
    kind: "counter",
    unit: "{lease}",
    description: "Leases that were garbage-collected without a release",
    attributes: ["group"],
    initial: [{}],
  },
  "holdfast.fence.checks": {
    kind: "counter",
    unit: "{check}",
    description: "Answers of checkFence",
    attributes: ["group", "result"],
    initial: [{ result: "current" }, { result: "stale" }, { result: "unknown" }],
  },
  "holdfast.quorum.margin": {
    kind: "histogram",
    unit: "{vote}",
    description: "Votes above the majority at each grant; 0: one failure from loss",
    attributes: ["engine"],
    buckets: [0, 1, 2, 3, 4],
  },
  "holdfast.quorum.votes": {
    kind: "counter",
    unit: "{vote}",
    description: "Votes of each node, for grants and for failed attempts",
    attributes: ["server.address", "vote"],
  },
  "holdfast.node.up": {
    kind: "gauge",
    unit: "1",
    description: "1: the server is reachable, and its votes count",
    attributes: ["server.address"],
  },
  "holdfast.node.clock.offset": {
    kind: "gauge",
    unit: "s",
    description: "The server's clock minus the clock of this process",
    attributes: ["server.address"],
  },
  "holdfast.node.uptime": {
    kind: "gauge",
    unit: "s",
    description: "Time since the server's start",
    attributes: ["server.address"],
  },
  "holdfast.node.restarts": {
    kind: "counter",
    unit: "{restart}",
    description: "Restarts of the server since the first collection",
    attributes: ["server.address"],
  },
  "holdfast.timer.lag": {
    kind: "gauge",
    unit: "s",
    description: "99th percentile of the delay of the event loop since the last collection",
    attributes: [],
  },
};

/** The counters and up-down counters that events change. */
export const counterNames: readonly CounterName[] = [
  "holdfast.held",
  "holdfast.waiting",
  "holdfast.grants",
  "holdfast.lost",
  "holdfast.releases",
  "holdfast.breaks",
  "holdfast.leaked",
  "holdfast.fence.checks",
  "holdfast.quorum.votes",
];

/** The names of all instruments, in the order of the table. */
export const instrumentNames: readonly InstrumentName[] = Object.keys(instruments) as InstrumentName[];
