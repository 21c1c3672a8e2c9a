import { checkDuration, checkInteger } from "./option-checks.ts";

interface HoldTimes {
  readonly maxHoldMs: number;
  readonly minHoldMs: number;
}

/** @throws {RangeError} also if the shortest hold is longer than the longest */
export function resolveHold(
  options: { readonly [Name in keyof HoldTimes]?: number | undefined },
  defaults: HoldTimes,
  maxTtlMs: number,
): HoldTimes {
  const maxHoldMs =
    options.maxHoldMs === undefined ? defaults.maxHoldMs : checkDuration("maxHoldMs", options.maxHoldMs, 1);
  const minHoldMs =
    options.minHoldMs === undefined
      ? defaults.minHoldMs
      : checkInteger("minHoldMs", options.minHoldMs, 0, maxTtlMs);
  if (minHoldMs > maxHoldMs) {
    throw new RangeError(
      `Expected \`minHoldMs\` to be at most \`maxHoldMs\`, got ${minHoldMs} and ${maxHoldMs}`,
    );
  }
  return { maxHoldMs, minHoldMs };
}
