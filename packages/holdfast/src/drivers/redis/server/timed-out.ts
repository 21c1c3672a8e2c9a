import type { Clock } from "../../../runtime/clock.ts";
import type { Acquired, AcquireRequest } from "../../../driver.ts";
import type { Holder } from "../../../lock-state.ts";
import { within } from "../../../runtime/timeout.ts";

/** How much longer than its deadline a waiter takes to say who holds the lock. */
const longestFarewellMs = 250;

interface FarewellHost {
  readonly clock: Clock;
  holderOf(key: string): Promise<Holder | undefined>;
}

/**
 * What a waiter is told when its time is over: who holds the lock. That is asked behind its leaving of the queue: once it is
 * answered, nothing of it is left there.
 */
export async function farewell(
  host: FarewellHost,
  { key, caller }: AcquireRequest,
  position: number | undefined,
): Promise<Acquired> {
  caller?.left();
  const asked = host.holderOf(key).catch(() => undefined);
  const holder = await within(host.clock, longestFarewellMs, asked);
  return { outcome: "held", holder, position };
}
