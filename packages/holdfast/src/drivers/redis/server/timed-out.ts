import type { Clock } from "../../../runtime/clock.ts";
import type { AcquireResult, AcquireRequest } from "../../../driver.ts";
import type { Holder } from "../../../lock-state.ts";
import { withTimeout } from "../../../runtime/timeout.ts";

/** How long after its deadline a waiter may wait for the name of the holder. */
const maxInspectMs = 250;

interface HolderLookup {
  readonly clock: Clock;
  holderOf(key: string): Promise<Holder | undefined>;
}

/**
 * The result of a waiter after its deadline, with the holder of the lock. The request for the holder follows the removal of the queue
 * entry, so its reply shows that the entry is removed.
 */
export async function waitTimedOut(
  host: HolderLookup,
  { key, waiter }: AcquireRequest,
  position: number | undefined,
): Promise<AcquireResult> {
  waiter?.onDequeued();
  const request = host.holderOf(key).catch(() => undefined);
  const holder = await withTimeout(host.clock, maxInspectMs, request);
  return { outcome: "held", holder, position };
}
