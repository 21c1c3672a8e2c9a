import { voteEvidence } from "../evidence.ts";
import type { Violation } from "../rule.ts";
import type { RunHistory } from "../attempts.ts";
import { crossesFailover } from "./failovers.ts";
import { capacityOf, intervalsByKey, type HoldInterval } from "./tenures.ts";

export function checkExclusion(run: RunHistory): Violation[] {
  return conflicts(run).violations;
}

/** The number of overlaps that a failover excuses, because the servers may have lost the earlier grant. */
export function conflictsAcrossFailovers(run: RunHistory): number {
  return conflicts(run).excused;
}

/** Compares each grant with the leases that are still valid at its time. */
function conflicts(run: RunHistory): { readonly violations: Violation[]; readonly excused: number } {
  const violations: Violation[] = [];
  let excused = 0;
  for (const [key, intervals] of intervalsByKey(run)) {
    const capacity = capacityOf(run.plan, key);
    forEachOverlap(intervals, (interval, overlapping) => {
      const known = overlapping.filter(({ from }) => !crossesFailover(run, key, from, interval.from));
      if (weightOf(known) + interval.weight > capacity) {
        const text = conflict(interval, known, capacity);
        const evidence = [interval, ...known].flatMap(({ leases }) =>
          leases.flatMap((lease) => voteEvidence(run, lease, interval.from)),
        );
        violations.push({ rule: "exclusion", at: interval.from, key, text, evidence });
      } else if (weightOf(overlapping) + interval.weight > capacity) {
        excused += 1;
      }
    });
  }
  return { violations, excused };
}

/** By key: the largest weight of concurrent holders, and for a read-write lock the largest number of readers. */
export function maxConcurrentWeight(run: RunHistory): Map<string, number> {
  const most = new Map<string, number>();
  for (const [key, intervals] of intervalsByKey(run)) {
    most.set(key, 0);
    forEachOverlap(intervals, (interval, overlapping) => {
      const isWriter = interval.leases[0]?.lockKind === "write";
      const weight = isWriter ? 1 : weightOf(overlapping) + interval.weight;
      most.set(key, Math.max(most.get(key) ?? 0, weight));
    });
  }
  return most;
}

function forEachOverlap(
  intervals: readonly HoldInterval[],
  visit: (interval: HoldInterval, overlapping: readonly HoldInterval[]) => void,
): void {
  let valid: HoldInterval[] = [];
  for (const interval of intervals) {
    if (interval.to <= interval.from) {
      continue;
    }
    valid = valid.filter(({ to }) => to > interval.from);
    visit(interval, valid);
    valid.push(interval);
  }
}

function weightOf(intervals: readonly HoldInterval[]): number {
  return intervals.reduce((sum, { weight }) => sum + weight, 0);
}

function conflict(interval: HoldInterval, overlapping: readonly HoldInterval[], capacity: number): string {
  const limit = interval.leases[0]?.lockKind === "semaphore" ? `, of ${capacity} permits` : "";
  if (overlapping.length === 0) {
    return `${describeHolders(interval)} by itself${limit}`;
  }
  const longest = Math.max(...overlapping.map(({ to }) => to)) - interval.from;
  const others = overlapping.map(describeHolders).join(", ");
  const were = overlapping.length === 1 ? "was" : "were";
  return `${describeHolders(interval)} while ${others} ${were} valid for ${longest.toFixed(3)} ms more${limit}`;
}

function describeHolders({ leases, token }: HoldInterval): string {
  const holders = leases.map(({ process, requestId }) => `${process}#${requestId}`);
  return `${holders.join(" and ")} (${[token, ...describeMode(leases[0])].join(", ")})`;
}

function describeMode(lease: HoldInterval["leases"][number] | undefined): string[] {
  if (lease?.lockKind === "semaphore") {
    return [`${lease.permits} permits`];
  }
  return lease?.lockKind === "read" || lease?.lockKind === "write" ? [`${lease.lockKind}s`] : [];
}
