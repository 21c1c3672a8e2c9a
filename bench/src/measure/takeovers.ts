import { median } from "./statistics.ts";

/** How one wait for a killed holder's lock ended. */
export type Takeover =
  | { readonly outcome: "taken"; readonly afterKillMs: number; readonly afterLeaseMs: number }
  | { readonly outcome: "early" | "failed"; readonly reason: string };

/** The times of one repetition, all on the same clock. */
export interface TakeoverTimes {
  readonly killedAt: number;
  readonly leaseEndsAt: number;
  readonly grantedAt: number;
}

/** A grant before the kill is no takeover, because two processes held the lock at once. */
export function takeoverAt({ killedAt, leaseEndsAt, grantedAt }: TakeoverTimes): Takeover {
  const afterKillMs = grantedAt - killedAt;
  if (afterKillMs >= 0) return { outcome: "taken", afterKillMs, afterLeaseMs: grantedAt - leaseEndsAt };
  return { outcome: "early", reason: `granted ${Math.ceil(-afterKillMs)} ms before the holder was killed` };
}

/** The values are NaN if no waiter took over. */
export function latenessOf(takeovers: readonly Takeover[], ttlMs: number): Record<string, number> {
  const acquired = takeovers.filter((one) => one.outcome === "taken");
  const afterKill = acquired.map(({ afterKillMs }) => afterKillMs);
  const afterLease = acquired.map(({ afterLeaseMs }) => afterLeaseMs);
  return {
    late: median(afterKill) - ttlMs,
    lateMax: longest(afterKill) - ttlMs,
    afterKill: median(afterKill),
    afterLease: median(afterLease),
    afterLeaseMax: longest(afterLease),
  };
}

/** One random moment in each of `count` equal parts of the range, so that no contestant has only favourable moments. */
export function spreadTimes(
  count: number,
  [fromMs, toMs]: readonly [fromMs: number, toMs: number],
  random: () => number,
): readonly number[] {
  const partMs = (toMs - fromMs) / count;
  return Array.from({ length: count }, (_, interval) => fromMs + (interval + random()) * partMs);
}

function longest(values: readonly number[]): number {
  return values.length > 0 ? Math.max(...values) : Number.NaN;
}
