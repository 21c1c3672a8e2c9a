import type { LeaseState } from "../lease/lease-state.ts";
import {
  type HeldLease,
  type Holder,
  localWaitersOf,
  lockState,
  type LockState,
  type Waiter,
} from "../lock-state.ts";
import type { LocalQueue } from "./local-queue.ts";
import type { Clock } from "../runtime/clock.ts";
import { withJson } from "../runtime/plain-values.ts";

/** At most this many waiters are listed. All are counted. */
const maxWaitersShown = 100;

/**
 * A state from the engine, merged with the facts that only this process has: leases that were handed over in memory, and waiters in
 * memory. If this process holds the lock, its waiters come before those at the engine, because the lock is handed over first.
 * A holder of this process may have reported its local waiters to the engine. These waiters are counted once.
 */
export function withLocalQueues(
  engineState: LockState,
  queues: readonly LocalQueue<LeaseState>[],
  heldLeases: readonly LeaseState[],
): LockState {
  const reporters = queues.map(({ waiterReporter }) => waiterReporter);
  const newerLeases = engineState.holders.map((holder) =>
    heldLeases.find(
      (lease) => ownsFencingToken(lease, holder) && lease.fencingToken > (holder.fencingToken ?? 0n),
    ),
  );
  const hasNewerHolder = newerLeases.some((lease) => lease !== undefined);
  const waitingCount = queues.reduce((sum, queue) => sum + queue.localWaiterCount, 0);
  const isOwn = engineState.holders.map((holder) =>
    [...heldLeases, ...reporters].some((lease) => ownsFencingToken(lease, holder)),
  );
  const state = withoutReportedWaiters(engineState, isOwn);
  return hasNewerHolder || waitingCount > 0
    ? lockState({
        ...state,
        ...(hasNewerHolder && withLocalHolders(state, newerLeases)),
        ...withLocalWaiters(state, queues, heldLeases.length > 0),
      })
    : state;
}

/** Whether the fencing token of a holder belongs to the grant of a lease. */
export function ownsFencingToken(
  lease: LeaseState | undefined,
  { fencingToken }: Partial<Holder> = {},
): boolean {
  const { fencingToken: first = 0n, fencingCount = 0 } = lease?.grant ?? {};
  return fencingToken !== undefined && first <= fencingToken && fencingToken < first + BigInt(fencingCount);
}

function withLocalWaiters(
  { holders, waiters, waiterCount }: LockState,
  queues: readonly LocalQueue<LeaseState>[],
  isFirst: boolean,
): Pick<LockState, "waiters" | "waiterCount"> {
  const waitingCount = queues.reduce((sum, queue) => sum + queue.localWaiterCount, 0);
  const [localOffset, engineOffset] = isFirst
    ? [0, waitingCount]
    : [waiterCount - localWaitersOf(holders), 0];
  const local: Waiter[] = [];
  for (const queue of queues) {
    for (const caller of queue.waiting) {
      if (localOffset + local.length >= maxWaitersShown) {
        break;
      }
      local.push({ ...caller.describe(), position: localOffset + local.length });
    }
  }
  const remote = waiters.map((waiter) => ({ ...waiter, position: engineOffset + waiter.position }));
  return {
    waiters: (isFirst ? [...local, ...remote] : [...remote, ...local]).slice(0, maxWaitersShown),
    waiterCount: waiterCount + waitingCount,
  };
}

/** The state without the local waiters that holders of this process reported. @param isOwn for each holder: whether it is one */
function withoutReportedWaiters(state: LockState, isOwn: readonly boolean[]): LockState {
  const { holders, waiterCount } = state;
  const reported = localWaitersOf(holders.filter((_, index) => isOwn[index]));
  return reported === 0
    ? state
    : lockState({
        ...state,
        holders: holders.map((holder, index) => {
          const { localWaiters, localWaitMs: _, ...rest } = holder;
          return isOwn[index] === true || localWaiters === undefined ? rest : holder;
        }),
        waiterCount: waiterCount - reported,
      });
}

/** The holders, each replaced by the lease to which its grant was handed over in memory, if there is one. */
function withLocalHolders(
  { holders, fencingToken }: LockState,
  newerLeases: readonly (LeaseState | undefined)[],
): Pick<LockState, "holders" | "fencingToken"> {
  const described = holders.map((holder, index) => {
    const { permits, since, heldMs } = holder;
    const lease = newerLeases[index];
    return lease
      ? {
          ...lease.describe(),
          ...(permits === undefined ? {} : { permits }),
          ...(since === undefined ? {} : { since }),
          ...(heldMs === undefined ? {} : { heldMs }),
        }
      : holder;
  });
  const numbers = described.map((holder) => holder.fencingToken ?? 0n);
  return {
    holders: described,
    fencingToken: numbers.reduce((max, each) => (each > max ? each : max), fencingToken ?? 0n),
  };
}

/** The public values of a lease. */
export function heldLease(lease: LeaseState, clock: Clock, localWaiters: number): HeldLease {
  const { key, lockMode, ttlMs, fencingToken } = lease;
  const heldMs = clock.now() - lease.heldFrom;
  const { owner, reason, labels, remainingMs = 0 } = lease.describe();
  return withJson({
    key,
    kind: lockMode?.kind ?? "mutex",
    ...(lockMode?.kind === "read-write" && { mode: lockMode.mode }),
    ...(lockMode?.kind === "semaphore" && { permits: lockMode.permits }),
    owner,
    ...(reason !== undefined && { reason }),
    ...(labels && { labels }),
    fencingToken,
    since: clock.wall() - heldMs,
    heldMs,
    ttlMs,
    remainingMs,
    localWaiters,
  });
}
