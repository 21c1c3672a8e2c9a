import type { Driver, LockMode } from "../driver.ts";
import type { Clock } from "../runtime/clock.ts";
import { hostAndPid } from "../runtime/node-modules.ts";
import { withJson } from "../runtime/plain-values.ts";
import { driftAllowanceMs, remainingValidityMs } from "../validity.ts";
import { heldLease } from "../local/local-view.ts";
import type { LeaseState } from "../lease/lease-state.ts";
import { version } from "../version.ts";
import type { ProcessHold, ProcessState, ProcessWait, ReportQuery } from "./process-state.ts";

/** A `Locks` of this process. */
interface Reporter {
  readonly driver: Driver;
  readonly clock: Clock;
  readonly owner: string;
  readonly instance: number;
  /** The calls of `acquire` that are not settled. */
  readonly acquisitions: {
    readonly items: readonly {
      readonly key: string;
      readonly lockMode: LockMode | undefined;
      readonly waitedMs: number;
    }[];
  };
  /** The leases in force. */
  heldLeases(): readonly LeaseState[];
  /** How many callers wait in memory for the key. */
  localWaitersOf(key: string): number;
}

/** The `Locks` of this process, by their driver. */
const reporters = new WeakMap<Driver, Set<Reporter>>();

/** Adds a `Locks` to the reports of its driver. @returns a function that removes it */
export function addReporter(reporter: Reporter): () => void {
  const { driver } = reporter;
  const all = reporters.get(driver) ?? new Set();
  reporters.set(driver, all.add(reporter));
  driver.processes?.serve((query) => localReports(driver, query));
  return () => all.delete(reporter);
}

/** The reports of all `Locks` of a driver in this process, without tokens, within the length of the query. */
export function localReports(driver: Driver, { key, maxLength }: ReportQuery): ProcessState[] {
  const budget = { left: maxLength };
  return [...(reporters.get(driver) ?? [])].map((reporter) => reportOf(reporter, key, budget));
}

function reportOf(reporter: Reporter, key: string | undefined, budget: { left: number }): ProcessState {
  const leases = reporter.heldLeases().filter((lease) => key === undefined || lease.key === key);
  const waits = waitsOf(reporter, key);
  return {
    owner: reporter.owner,
    ...hostAndPid(),
    version,
    instance: reporter.instance,
    answered: true,
    seenMs: 0,
    holds: within(budget, leases, (lease) => holdOf(reporter, lease)),
    holdCount: leases.length,
    waits: within(budget, waits, (wait) => wait),
    waitCount: waits.length,
  };
}

/** The items whose JSON fits into the budget. */
function within<Item, Shown extends object>(
  budget: { left: number },
  items: readonly Item[],
  show: (item: Item) => Shown,
): Shown[] {
  const shown: Shown[] = [];
  for (const item of items) {
    const one = show(item);
    budget.left -= JSON.stringify(one).length + 1;
    if (budget.left < 0) {
      break;
    }
    shown.push(one);
  }
  return shown;
}

function holdOf(reporter: Reporter, lease: LeaseState): ProcessHold {
  const { clock } = reporter;
  const localWaiters = reporter.localWaitersOf(lease.key);
  const { remainingMs: marginMs, ...hold } = heldLease(lease, clock, localWaiters);
  const { ttlMs, heldMs } = hold;
  const sinceRenewal = ttlMs - driftAllowanceMs(ttlMs) - remainingValidityMs(lease.validity, clock);
  return withJson({ ...hold, renewedMs: Math.min(heldMs, Math.max(0, sinceRenewal)), marginMs });
}

/** The waiting calls by key and kind, the longest waits first. */
function waitsOf({ acquisitions }: Reporter, key: string | undefined): ProcessWait[] {
  const waits = new Map<
    string,
    { key: string; kind: ProcessWait["kind"]; count: number; oldestMs: number }
  >();
  for (const waiter of acquisitions.items) {
    if (key === undefined || waiter.key === key) {
      const kind = kindOf(waiter.lockMode);
      const name = `${kind} ${waiter.key}`;
      const wait = waits.get(name) ?? { key: waiter.key, kind, count: 0, oldestMs: 0 };
      wait.count += 1;
      wait.oldestMs = Math.max(wait.oldestMs, waiter.waitedMs);
      waits.set(name, wait);
    }
  }
  return Array.from(waits.values()).sort((a, b) => b.oldestMs - a.oldestMs);
}

function kindOf(lockMode: LockMode | undefined): ProcessWait["kind"] {
  return lockMode?.kind ?? "mutex";
}
