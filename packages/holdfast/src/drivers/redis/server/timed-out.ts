import type { Clock } from "../../../runtime/clock.ts";
import type { AcquireResult, AcquireRequest } from "../../../driver.ts";
import type { Holder } from "../../../lock-state.ts";
import { withTimeout } from "../../../runtime/timeout.ts";

/** How much longer than its deadline a waiter takes to say who holds the lock. */
const maxInspectMs = 250;

interface HolderLookup {
  readonly clock: Clock;
  holderOf(key: string): Promise<Holder | undefined>;
}

/**
 * What a waiter is told when its time is over: who holds the lock. That is asked behind its leaving of the queue: once it is
 * answered, nothing of it is left there.
 */
export async function waitTimedOut(
  host: HolderLookup,
  { key, waiter }: AcquireRequest,
  position: number | undefined,
): Promise<AcquireResult> {
  waiter?.onDequeued();
  const asked = host.holderOf(key).catch(() => undefined);
  const holder = await withTimeout(host.clock, maxInspectMs, asked);
  return { outcome: "held", holder, position };
}
