import type { Holder, Lease, Locks } from "holdfast";

import { formatDuration } from "../duration.ts";
import { errorMessage, type Output } from "../output.ts";
import { byHolder, firstHeld } from "./held.ts";
import { onceLabels } from "./period.ts";
import { waitUnless } from "./wait-unless.ts";

/** A difference below this is not worth a wait of the process, ms. */
const toleranceMs = 100;

/** The period of a key, and its end on the scale of `performance.now()`. */
export interface Period {
  readonly periodMs: number;
  readonly until: number;
}

/**
 * Leaves the key held until the end of the period, without this process, and marks its command as run. A renewal may have set a later end
 * at the engine. Then this process waits for the end of the period, and releases the key.
 * @returns whether the lease was held until now, as far as known
 */
export async function keepUntil(
  locks: Locks,
  lease: Lease,
  { periodMs, until }: Period,
  { voice: output, interrupted }: { readonly voice: Output; readonly interrupted: AbortSignal },
): Promise<boolean> {
  const restMs = (): number => until - performance.now();
  if (restMs() <= 0) {
    return lease.release().catch(() => true); // the period has ended, and the TTL ends soon
  }
  const wasHeld = lease.remainingMs() > 0;
  let kept = lease;
  try {
    kept = await markAsRun(locks, lease, periodMs);
    await kept.extend(Math.max(100, Math.ceil(restMs())));
  } catch (error) {
    const isLost = (error as { code?: unknown }).code === "lease-lost";
    const rest = formatDuration(restMs());
    output.info(`the lock "${lease.key}" could not be kept for ${rest} more: ${errorMessage(error)}`);
    kept.orphan();
    return wasHeld && !isLost;
  }
  output.detail(`the command ran; ${nextRun(restMs())}`);
  const isExact = kept.remainingMs() <= restMs() + toleranceMs;
  if (!isExact && (await waitUnless(restMs(), interrupted))) {
    return kept.release().catch(() => true);
  }
  kept.orphan();
  return true;
}

/** The lease with the label of a command that ran. A lease of several keys keeps its labels. */
async function markAsRun(locks: Locks, lease: Lease, periodMs: number): Promise<Lease> {
  if (lease.keys.length > 1) {
    return lease;
  }
  const labels = onceLabels("ran", periodMs);
  return locks.adopt({ ...lease.transfer(), labels }, { renew: false, maxHoldMs: Infinity });
}

/** Explains why the command of a period is not run: it ran in this period, or it runs now. And when the next run is possible. */
export async function ranMessage(locks: Locks, keys: readonly string[]): Promise<string> {
  const { key, holder } = await firstHeld(locks, keys);
  const { once, periodMs } = holder?.labels ?? {};
  const period = Number(periodMs);
  const see = `see holdfast inspect ${key}`;
  if (holder === undefined) {
    return `"${key}" ran already, or runs now; ${see}`;
  } else if (once === "ran") {
    const within = Number.isFinite(period) ? ` within the last ${formatDuration(period)}` : "";
    return `"${key}" ran${within}, started${byHolder(holder)}; ${nextRun(holder.remainingMs)}`;
  } else if (once === "running") {
    return `"${key}" is being run${byHolder(holder)}; ${nextRun(restOf(holder, period))}, or at once if that run fails`;
  }
  return `"${key}" is held${byHolder(holder)}, so no run began; ${see}`;
}

function restOf({ heldMs }: Holder, periodMs: number): number | undefined {
  return heldMs === undefined || !Number.isFinite(periodMs) ? undefined : Math.max(0, periodMs - heldMs);
}

function nextRun(ms: number | undefined): string {
  return ms === undefined
    ? "the next run is possible after its period"
    : `the next run is possible in ${formatDuration(ms)}, at ${new Date(Date.now() + ms).toISOString()}`;
}
