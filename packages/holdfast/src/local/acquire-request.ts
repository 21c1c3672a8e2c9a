import type { AcquireRequest, LockMode } from "../driver.ts";
import type { ResolvedAcquire, ResolvedLocks } from "../options.ts";

/** The facts about other callers of the process that a request depends on. */
export interface RequestHost {
  readonly options: ResolvedLocks;
  readonly usesLocalQueues: boolean;
  /** Whether callers of this process wait in memory for the key in this mode, or already hold all of it. */
  isContended(key: string, lockMode: LockMode | undefined): boolean;
}

/** The waiting call that a request belongs to. */
interface WaitingCall {
  readonly lockMode: LockMode | undefined;
  readonly ticket: number | undefined;
  onDequeued(): void;
  onQueued(position: number | undefined): void;
}

/** More fencing tokens in one grant could run ahead of the engine's clock, which is their floor when the engine has lost its counter. */
const maxHandovers = 64;

/** The request of one call to the engine. @param wait absent: the call only tries */
export function requestFor(
  host: RequestHost,
  key: string,
  options: ResolvedAcquire,
  wait?: { readonly deadline: number; readonly caller: WaitingCall; readonly isRequeue: boolean },
): AcquireRequest {
  const isContended = wait?.isRequeue === true || host.isContended(key, options.lockMode);
  return {
    key,
    lockMode: wait?.caller.lockMode ?? options.lockMode,
    ttlMs: options.firstTtlMs ?? options.ttlMs,
    deadline: wait?.deadline ?? null,
    ticket: wait?.caller.ticket,
    waiter: wait?.caller,
    fencingCount: isContended ? fencingCountFor(host, options) : 1,
    info: options.info,
  };
}

/**
 * How many fencing tokens to request: one for each possible hand-over. This applies only if another caller of this process waits, or has
 * the lock. Such a caller often returns at once.
 * A lone caller requests one fencing token, so the engine always knows the fencing token of its lease.
 */
function fencingCountFor(host: RequestHost, options: ResolvedAcquire): number {
  const { handover } = host.options;
  return handover && options.renew && usesLocalQueue(host, options)
    ? Math.min(handover.max, maxHandovers) + 1
    : 1;
}

/** Readers and writers do not queue locally, because a run of local readers would keep a writer waiting. */
export function usesLocalQueue({ usesLocalQueues }: RequestHost, { lockMode }: ResolvedAcquire): boolean {
  return usesLocalQueues && lockMode?.kind !== "read-write";
}
