import {
  figuresByKind,
  latchFigures,
  sharedFigures,
  type KindFigures,
  type LatchFigures,
} from "./kind-figures.ts";
import type { LockKind } from "../run/lock.ts";
import { conflictsAcrossFailovers } from "../judge/rules/exclusion.ts";
import { mayBeShared } from "../judge/rules/tenures.ts";
import { requestsOf, grantedByKey, type RunHistory, type AttemptHistory } from "../judge/attempts.ts";

/** The figures of a run. */
export interface Figures {
  readonly seconds: number;
  readonly faults: number;
  readonly faultsByKind: Readonly<Record<string, number>>;
  readonly processes: number;
  readonly requests: number;
  readonly grants: number;
  readonly grantsByKind: Readonly<Record<string, number>>;
  readonly grantsByKey: Readonly<Record<string, number>>;
  readonly byLock: Readonly<Partial<Record<LockKind, KindFigures>>>;
  readonly latches: LatchFigures;
  /** The largest number of concurrent holders, by key. */
  readonly maxConcurrent: Readonly<Record<string, string>>;
  readonly refusals: Readonly<Record<string, number>>;
  readonly losses: number;
  readonly lossesByReason: Readonly<Record<string, number>>;
  /** Leases whose loss was reported only after the next grant, because their process was stalled. */
  readonly lateLossNotices: number;
  readonly breaks: number;
  /** The failovers of the run. */
  readonly failovers: readonly FailoverFigures[];
  /** Overlaps with a holder that a failover may have lost. */
  readonly conflictsAcrossFailovers: number;
  /** Writes that the resource refused because of a larger token. */
  readonly refusedByResource: number;
  /** Writes to the counter without tokens that overwrote the writes of others. */
  readonly lostWithoutTokens: number;
  readonly writesWithoutTokens: number;
  readonly lostWithTokens: number;
  readonly writesWithTokens: number;
  /** Scripts of all servers for each grant, in storms and in quiet periods. */
  readonly scriptsPerGrant: Readonly<Record<"storm" | "quiet", number | null>>;
  /** For a quorum, by phase: how many grants needed how many rounds until a majority gave one fencing token. */
  readonly rounds: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly slowest: readonly SlowRequest[];
  readonly slowestInQuietPeriod: readonly SlowRequest[];
}

/** The figures of one failover. */
interface FailoverFigures {
  readonly at: number;
  /** For how long no concerned lock was granted: before the failover was noticed, and after it. */
  readonly withoutGrantMs: number;
  /** For how long two servers reported the role of the primary. */
  readonly twoForMs: number;
}

/** A granted request, and its duration. */
export interface SlowRequest {
  readonly waitedMs: number;
  readonly at: number;
  readonly key: string;
  readonly requester: string;
  readonly kind: string;
  readonly lockKind: LockKind;
}

const maxSlowShown = 10;

export function figuresOf(run: RunHistory): Figures {
  const attempts = requestsOf(run);
  const granted = attempts.filter(({ grantedAt }) => grantedAt !== undefined);
  const lost = granted.filter(({ lostAt }) => lostAt !== undefined);
  const resources = Array.from(run.resources.values());
  const sum = (count: (resource: (typeof resources)[number]) => number): number =>
    resources.reduce((total, resource) => total + count(resource), 0);
  return {
    seconds: Math.round(run.endedAt / 1_000),
    faults: run.faults.length,
    faultsByKind: counted(run.faults.map(({ kind }) => kind)),
    processes: run.processes.size,
    requests: attempts.length,
    grants: granted.length,
    grantsByKind: counted(granted.map(({ kind }) => kind)),
    grantsByKey: counted(
      run.attempts.filter(({ grantedAt }) => grantedAt !== undefined).map(({ key }) => key),
    ),
    byLock: figuresByKind(attempts),
    latches: latchFigures(run),
    maxConcurrent: sharedFigures(run),
    refusals: counted(attempts.flatMap(({ refusal }) => (refusal === undefined ? [] : [refusal]))),
    losses: lost.length,
    lossesByReason: counted(lost.map(({ lossReason }) => lossReason ?? "?")),
    lateLossNotices: countLateLossNotices(run),
    breaks: run.breaks.length,
    failovers: failoverFigures(run),
    conflictsAcrossFailovers: conflictsAcrossFailovers(run),
    refusedByResource: sum(({ refused }) => refused),
    lostWithoutTokens: sum(({ uncheckedWrites, unchecked }) => uncheckedWrites - unchecked),
    writesWithoutTokens: sum(({ uncheckedWrites }) => uncheckedWrites),
    lostWithTokens: sum(({ checkedWrites, checked }) => checkedWrites - checked),
    writesWithTokens: sum(({ checkedWrites }) => checkedWrites),
    scriptsPerGrant: { storm: scriptsPerGrant(run, "storm"), quiet: scriptsPerGrant(run, "quiet") },
    rounds: roundsOf(run),
    slowest: slowest(granted.filter(({ kind }) => kind !== "probe")),
    slowestInQuietPeriod: slowest(granted.filter(({ kind }) => kind === "probe")),
  };
}

function failoverFigures(run: RunHistory): FailoverFigures[] {
  return run.failovers
    .filter(({ isPromotion }) => isPromotion)
    .map(({ at, until, keys }) => {
      const own = run.attempts.filter(({ key }) => keys === null || keys.includes(key));
      const grants = own.map(({ grantedAt }) => grantedAt).filter((moment) => moment !== undefined);
      const before = Math.max(0, ...grants.filter((moment) => moment <= at));
      const after = Math.min(run.endedAt, ...grants.filter((moment) => moment > at));
      return {
        at: Math.round(at),
        withoutGrantMs: Math.round(after - before),
        twoForMs: Math.round(until - at),
      };
    });
}

function roundsOf(run: RunHistory): Record<string, Record<string, number>> {
  const phaseAt = (at: number): string => run.phases.findLast(({ from }) => from <= at)?.phase ?? "calm";
  const phases: Record<string, string[]> = {};
  for (const { at, rounds } of run.majorityGrants) {
    (phases[phaseAt(at)] ??= []).push(`${rounds} rounds`);
  }
  return Object.fromEntries(Object.entries(phases).map(([phase, names]) => [phase, counted(names)]));
}

function slowest(granted: readonly AttemptHistory[]): SlowRequest[] {
  return granted
    .map(({ grantedAt = 0, requestedAt, key, process, requestId, kind, lockKind }) => ({
      waitedMs: Math.round(grantedAt - requestedAt),
      at: Math.round(requestedAt),
      key,
      requester: `${process}#${requestId}`,
      kind,
      lockKind,
    }))
    .sort((one, other) => other.waitedMs - one.waitedMs)
    .slice(0, maxSlowShown);
}

function countLateLossNotices(run: RunHistory): number {
  let count = 0;
  const exclusive = Array.from(grantedByKey(run)).filter(([key]) => !mayBeShared(run.plan, key));
  for (const [, held] of exclusive) {
    const inOrder = held.toSorted((one, other) => one.grantedAt - other.grantedAt);
    for (const [index, { lostAt, token }] of inOrder.entries()) {
      const next = inOrder.slice(index + 1, index + 4).find((other) => other.token !== token);
      count += lostAt !== undefined && next !== undefined && next.grantedAt < lostAt ? 1 : 0;
    }
  }
  return count;
}

function scriptsPerGrant(run: RunHistory, wanted: "storm" | "quiet"): number | null {
  let scripts = 0;
  let grants = 0;
  const granted = requestsOf(run)
    .flatMap(({ grantedAt }) => (grantedAt === undefined ? [] : [grantedAt]))
    .sort((one, other) => one - other);
  for (const { phase, from, to } of run.phases) {
    const before = run.scripts.findLast(({ at }) => at <= from);
    const after = run.scripts.findLast(({ at }) => at <= to);
    if (phase === wanted && before && after) {
      scripts += after.count - before.count;
      grants += indexOfFirst(granted, to) - indexOfFirst(granted, from);
    }
  }
  return grants === 0 ? null : Math.round((scripts / grants) * 10) / 10;
}

/** The number of smaller values in a sorted list. */
function indexOfFirst(sorted: readonly number[], bound: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) < bound) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

function counted(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) {
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return Object.fromEntries(Object.entries(counts).sort(([, one], [, other]) => other - one));
}
