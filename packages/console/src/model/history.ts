import type { History, Observed } from "../api/types.ts";

/**
 * How far the clock of the browser is ahead of that of the service, in whole seconds, as ms. Otherwise the delay of each reply would move all
 * times.
 * @param at when the reply arrived, by the clock of the browser
 */
export function clockDifferenceMs({ asOf }: Observed, at: number): number {
  return asOf === undefined ? 0 : Math.round((at - asOf) / 1_000) * 1_000;
}

/** A history in the time of the browser. */
export function inLocalTime(history: History, at: number): History {
  const aheadMs = clockDifferenceMs(history, at);
  const { knownSince, holds } = history;
  return {
    ...history,
    knownSince: knownSince + aheadMs,
    holds: holds.map((hold) => ({
      ...hold,
      since: hold.since + aheadMs,
      until: hold.until === null ? null : hold.until + aheadMs,
    })),
  };
}
