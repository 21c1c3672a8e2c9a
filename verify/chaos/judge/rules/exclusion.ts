import { evidenceOf } from "../evidence.ts";
import type { Violation } from "../rules.ts";
import type { RunStory } from "../attempts.ts";
import { isAcross } from "./failovers.ts";
import { capacityOf, tenuresByKey, type Tenure } from "./tenures.ts";

export function excludes(run: RunStory): Violation[] {
  return conflicts(run).violations;
}

/** What exclusion did not hold for, and was not promised for: conflicts with who was forgotten by a failover. */
export function conflictsAcrossFailovers(run: RunStory): number {
  return conflicts(run).excused;
}

/** Goes through the grants in their order, with those that are still valid at each. */
function conflicts(run: RunStory): { readonly violations: Violation[]; readonly excused: number } {
  const violations: Violation[] = [];
  let excused = 0;
  for (const [key, tenures] of tenuresByKey(run)) {
    const capacity = capacityOf(run.plan, key);
    eachWithRivals(tenures, (tenure, rivals) => {
      const known = rivals.filter(({ from }) => !isAcross(run, key, from, tenure.from));
      if (weightOf(known) + tenure.weight > capacity) {
        const text = conflict(tenure, known, capacity);
        const evidence = [tenure, ...known].flatMap(({ leases }) =>
          leases.flatMap((lease) => evidenceOf(run, lease, tenure.from)),
        );
        violations.push({ rule: "exclusion", at: tenure.from, key, text, evidence });
      } else if (weightOf(rivals) + tenure.weight > capacity) {
        excused += 1;
      }
    });
  }
  return { violations, excused };
}

/** By key: the most that its holders weighed at once, or of a read-write lock, how many readers there were. */
export function mostAtOnce(run: RunStory): Map<string, number> {
  const most = new Map<string, number>();
  for (const [key, tenures] of tenuresByKey(run)) {
    most.set(key, 0);
    eachWithRivals(tenures, (tenure, rivals) => {
      const isWriter = tenure.leases[0]?.as === "write";
      const weight = isWriter ? 1 : weightOf(rivals) + tenure.weight;
      most.set(key, Math.max(most.get(key) ?? 0, weight));
    });
  }
  return most;
}

function eachWithRivals(
  tenures: readonly Tenure[],
  look: (tenure: Tenure, rivals: readonly Tenure[]) => void,
): void {
  let valid: Tenure[] = [];
  for (const tenure of tenures) {
    if (tenure.to <= tenure.from) {
      continue;
    }
    valid = valid.filter(({ to }) => to > tenure.from);
    look(tenure, valid);
    valid.push(tenure);
  }
}

function weightOf(tenures: readonly Tenure[]): number {
  return tenures.reduce((sum, { weight }) => sum + weight, 0);
}

function conflict(tenure: Tenure, rivals: readonly Tenure[], capacity: number): string {
  const limit = tenure.leases[0]?.as === "semaphore" ? `, of ${capacity} permits` : "";
  if (rivals.length === 0) {
    return `${told(tenure)} by itself${limit}`;
  }
  const longest = Math.max(...rivals.map(({ to }) => to)) - tenure.from;
  const others = rivals.map(told).join(", ");
  const were = rivals.length === 1 ? "was" : "were";
  return `${told(tenure)} while ${others} ${were} valid for ${longest.toFixed(3)} ms more${limit}`;
}

function told({ leases, token }: Tenure): string {
  const holders = leases.map(({ process, ask }) => `${process}#${ask}`);
  return `${holders.join(" and ")} (${[token, ...howShared(leases[0])].join(", ")})`;
}

function howShared(lease: Tenure["leases"][number] | undefined): string[] {
  if (lease?.as === "semaphore") {
    return [`${lease.permits} permits`];
  }
  return lease?.as === "read" || lease?.as === "write" ? [`${lease.as}s`] : [];
}
