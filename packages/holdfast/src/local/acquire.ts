import type { AcquireResult } from "../driver.ts";
import { LockError } from "../errors.ts";
import type { LeaseHandle } from "../lease/lease-handle.ts";
import { LeaseState } from "../lease/lease-state.ts";
import type { ResolvedAcquire } from "../options.ts";
import { requestFor, usesLocalQueue } from "./acquire-request.ts";
import { Acquisition } from "./acquisition.ts";
import type { LocalCoordinator } from "./coordinator.ts";

/**
 * Waits for the lock, first in the local queue and then at the engine.
 * Rejects with a `WaitTimeoutError`, the signal's reason, `closed`, `too-many-waiters`, or the engine's error.
 */
export function acquire(
  coordinator: LocalCoordinator,
  key: string,
  options: ResolvedAcquire,
): Promise<LeaseHandle> {
  const queues = coordinator.queuesOf(key);
  if (queues.waiterCount >= coordinator.options.maxWaiters) {
    const message = `${queues.waiterCount} callers of this process already wait for "${key}"; the limit is \`maxWaiters\``;
    return Promise.reject(new LockError(message, { code: "too-many-waiters", key, retryable: true }));
  }
  return new Acquisition(coordinator, queues, key, options).start();
}

/** Tries once, without waiting. */
export async function tryAcquire(
  coordinator: LocalCoordinator,
  key: string,
  options: ResolvedAcquire,
): Promise<{ lease: LeaseHandle } | { held: Extract<AcquireResult, { outcome: "held" }> }> {
  const { driver } = coordinator;
  const local = coordinator.holderOf(key);
  if (local && options.lockMode === undefined) {
    return { held: { outcome: "held", holder: local.describe() } };
  }
  const pending = driver.acquire(requestFor(coordinator, key, options));
  const acquired = await coordinator.awaitCancellable(pending, options);
  if (acquired.outcome === "held") {
    return { held: acquired };
  }
  if (options.trace) {
    options.trace.via = acquired.grant.via ?? "reply";
  }
  const { state: leaseState, lease } = LeaseState.create(coordinator, acquired.grant, options);
  if (usesLocalQueue(coordinator, options)) {
    coordinator.queuesOf(key).queueFor(options.lockMode).startRun(leaseState, coordinator.clock.now());
  }
  return { lease };
}
