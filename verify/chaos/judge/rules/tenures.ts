import type { Instant } from "../history.ts";
import type { Plan } from "../../plan/plan.ts";
import { usableUntil, grantedByKey, type Break, type GrantedAttempt, type RunHistory } from "../attempts.ts";

/** A grant, and all leases that stand on it: of repeats of an attempt, of who adopted it, of who entered again. */
export interface HoldInterval {
  readonly key: string;
  readonly token: bigint;
  /** How much of the key's {@link capacityOf} it takes. */
  readonly weight: number;
  readonly leases: readonly GrantedAttempt[];
  readonly from: Instant;
  /** Not after `from`: it was over before its holder knew of it. */
  readonly to: Instant;
}

/** Hand-over in memory gives the numbers of one grant, at most so many. */
const maxRunLength = 64n;

/** Whether the two tokens may be of one grant, as hand-over in memory gives them. */
export function isSameGrantRun(one: bigint, other: bigint): boolean {
  return one - other <= maxRunLength && other - one <= maxRunLength;
}

/** Of a read-write lock: more than there are readers, and a writer takes all of it. */
const allReaders = 1_000_000;

/** What holders of the key may weigh together: 1, but of a read-write lock and of a semaphore. */
export function capacityOf({ keys }: Plan, key: string): number {
  if (keys.readWrite.includes(key)) {
    return allReaders;
  }
  return keys.semaphores.find((semaphore) => semaphore.key === key)?.limit ?? 1;
}

/** Whether it excludes everybody else. */
export function isExclusive({ lockKind }: GrantedAttempt): boolean {
  return lockKind !== "read" && lockKind !== "semaphore";
}

/** Whether holders of it may be beside each other. */
export function mayBeShared(plan: Plan, key: string): boolean {
  return capacityOf(plan, key) > 1;
}

function weightOf({ lockKind, permits }: GrantedAttempt): number {
  return lockKind === "write" ? allReaders : permits;
}

/** Sorted by when they began. */
export function intervalsByKey(run: RunHistory): Map<string, HoldInterval[]> {
  const byKey = new Map<string, HoldInterval[]>();
  for (const [key, held] of grantedByKey(run)) {
    const breaks = run.breaks.filter((broken) => broken.key === key);
    const intervals = grantsOf(held).map((leases) => intervalOf(key, leases));
    endAtBreaks(intervals, breaks, run.plan.keys.readWrite.includes(key) ? 0n : maxRunLength);
    byKey.set(
      key,
      intervals.sort((one, other) => one.from - other.from),
    );
  }
  return byKey;
}

/** Those that have one token. Readers of a quorum may have the token of other readers. */
function grantsOf(held: readonly GrantedAttempt[]): GrantedAttempt[][] {
  const grants: GrantedAttempt[][] = [];
  const byToken = new Map<bigint, GrantedAttempt[]>();
  for (const lease of held.toSorted((one, other) => one.grantedAt - other.grantedAt)) {
    const { token, lockKind } = lease;
    const leases = (lockKind === "read" ? undefined : byToken.get(token)) ?? [];
    if (leases.length === 0) {
      grants.push(leases);
    }
    leases.push(lease);
    if (lockKind !== "read") {
      byToken.set(token, leases);
    }
  }
  return grants;
}

/**
 * Leases of one attempt, or of one owner that entered again, are one grant: the last release ends it. After a transfer it goes on with
 * who adopted it. A writer that is downgraded is a reader from then on, which is a tenure of its own.
 */
function intervalOf(key: string, leases: readonly GrantedAttempt[]): HoldInterval {
  const { token, lockKind } = leases[0] as GrantedAttempt;
  const isCounted = lockKind === "reentrant" || leases.every(({ attemptId }) => attemptId !== undefined);
  const pickRelease = isCounted ? Math.max : Math.min;
  const released = pickRelease(...leases.map(({ releasingAt }) => releasingAt ?? Infinity));
  return {
    key,
    token,
    weight: weightOf(leases[0] as GrantedAttempt),
    leases,
    from: Math.min(
      ...leases.map((lease) => (lease.kind === "downgrade" ? lease.requestedAt : lease.grantedAt)),
    ),
    to: Math.min(released, Math.max(...leases.map(usableUntil))),
  };
}

/**
 * From the moment that an operator begins to break a lock its holder's validity is not judged: it learns of it by a message, as do
 * those of its process that it was handed to.
 */
function endAtBreaks(intervals: HoldInterval[], breaks: readonly Break[], run: bigint): void {
  for (const { at, token } of breaks) {
    const broken = intervals.filter((interval) => interval.token === token);
    const processes = new Set(broken.flatMap(({ leases }) => leases.map(({ process }) => process)));
    for (const [index, interval] of intervals.entries()) {
      const isNear = interval.token - token <= run && token - interval.token <= run;
      if (isNear && interval.to > at && interval.leases.some(({ process }) => processes.has(process))) {
        intervals[index] = { ...interval, to: at };
      }
    }
  }
}
