import type { MultiAcquired } from "../driver.ts";
import { closedError } from "../errors.ts";
import type { LeaseHandle } from "../lease/lease-handle.ts";
import { LeaseState } from "../lease/lease-state.ts";
import type { ResolvedAcquire } from "../options.ts";
import { onAbort } from "../runtime/abort-listeners.ts";
import { requestFor, usesLocalQueue } from "./acquire-request.ts";
import type { LocalCoordinator } from "./coordinator.ts";

/** Whether the engine can acquire these keys in one step. */
export function canAcquireMany({ driver }: LocalCoordinator, keys: readonly string[]): boolean {
  return driver.acquireMany !== undefined && driver.canAcquireMany?.(keys) !== false;
}

/** Acquires several keys in one step. Null: one of them is held. Undefined: the engine has no such step. */
export async function tryAcquireMany(
  coordinator: LocalCoordinator,
  keys: readonly string[],
  options: ResolvedAcquire,
): Promise<readonly LeaseHandle[] | null | undefined> {
  const { driver } = coordinator;
  if (!driver.acquireMany) {
    return undefined;
  } else if (keys.some((key) => coordinator.holderOf(key))) {
    return null;
  }
  const pending = driver.acquireMany(keys.map((key) => requestFor(coordinator, key, options)));
  const result = await untilCancelled(coordinator, pending, options);
  if (result.outcome === "held") {
    return null;
  }
  return result.grants.map((grant) => {
    const { state: leaseState, lease } = LeaseState.create(coordinator, grant, options);
    if (usesLocalQueue(coordinator, options)) {
      coordinator.queuesOf(grant.key).mutex.startRun(leaseState, coordinator.clock.now());
    }
    return lease;
  });
}

/** Waits for the result until the caller's signal or `close()` aborts the wait. Later grants are abandoned. */
async function untilCancelled(
  coordinator: LocalCoordinator,
  pending: Promise<MultiAcquired>,
  { signal }: ResolvedAcquire,
): Promise<MultiAcquired> {
  const stopListening: (() => void)[] = [];
  const cancelled = new Promise<never>((_resolve, reject) => {
    for (const source of [coordinator.closing, ...(signal ? [signal] : [])]) {
      stopListening.push(onAbort(source, reject));
    }
  });
  const releaseIfCancelled = (result: MultiAcquired): MultiAcquired => {
    if ((coordinator.isClosed || signal?.aborted === true) && result.outcome === "granted") {
      for (const grant of result.grants) {
        coordinator.abandonGrant(grant);
      }
      throw coordinator.isClosed ? closedError() : signal?.reason;
    }
    return result;
  };
  pending.then(releaseIfCancelled).catch(() => undefined);
  try {
    return releaseIfCancelled(await Promise.race([pending, cancelled]));
  } finally {
    for (const stop of stopListening) {
      stop();
    }
  }
}
