import type { Instant } from "../history.ts";
import type { Plan } from "../../plan/plan.ts";
import { usableUntil, grantedByKey, type Break, type GrantedAttempt, type RunHistory } from "../attempts.ts";

/** A grant with all leases that share it: leases of repeats, of a process that adopted the lease, and of nested entries. */
export interface HoldInterval {
  readonly key: string;
  readonly token: bigint;
  /** The part of the key's {@link capacityOf} that the grant uses. */
  readonly weight: number;
  readonly leases: readonly GrantedAttempt[];
  readonly from: Instant;
  /** If this is not after `from`, the grant had expired before its holder knew about it. */
  readonly to: Instant;
}

/** Whether the two tokens can belong to one grant that is handed over in memory. */
export function isSameGrantRun({ tokenSpread }: Plan, one: bigint, other: bigint): boolean {
  return one - other <= BigInt(tokenSpread) && other - one <= BigInt(tokenSpread);
}

/** The capacity of a read-write lock, more than there are readers. A writer uses all of it. */
const allReaders = 1_000_000;

/** The total weight that holders of the key may have at once: 1, except for a read-write lock and a semaphore. */
export function capacityOf({ keys }: Plan, key: string): number {
  if (keys.readWrite.includes(key)) {
    return allReaders;
  }
  return keys.semaphores.find((semaphore) => semaphore.key === key)?.limit ?? 1;
}

/** Whether the lease excludes all others. */
export function isExclusive({ lockKind }: GrantedAttempt): boolean {
  return lockKind !== "read" && lockKind !== "semaphore";
}

/** Whether holders of the key may overlap. */
export function mayBeShared(plan: Plan, key: string): boolean {
  return capacityOf(plan, key) > 1;
}

function weightOf({ lockKind, permits }: GrantedAttempt): number {
  return lockKind === "write" ? allReaders : permits;
}

/** The intervals of each key, sorted by start. */
export function intervalsByKey(run: RunHistory): Map<string, HoldInterval[]> {
  const byKey = new Map<string, HoldInterval[]>();
  for (const [key, held] of grantedByKey(run)) {
    const breaks = run.breaks.filter((broken) => broken.key === key);
    const intervals = grantsOf(held).map((leases) => intervalOf(key, leases));
    const isReadWrite = run.plan.keys.readWrite.includes(key);
    endAtBreaks(intervals, breaks, isReadWrite ? 0n : BigInt(run.plan.tokenSpread));
    byKey.set(
      key,
      intervals.sort((one, other) => one.from - other.from),
    );
  }
  return byKey;
}

/** Groups leases by token. Readers of a quorum may have the same token as other readers. */
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
 * Leases of one attempt, or of one owner that entered again, are one grant, which the last release ends. After a transfer the adopter
 * continues the grant. A downgraded writer is a reader from then on, with its own interval.
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
 * After an operator starts to break a lock, the validity of its holder is not judged, because the notification may reach the holder late.
 * This holds also for later callers of the same process that got the grant by hand-over.
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
