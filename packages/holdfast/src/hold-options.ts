import { checkDuration, checkInteger } from "./option-checks.ts";
import type { AcquireOptions, ResolvedAcquire } from "./options.ts";

/** @throws {RangeError} also if the shortest hold is longer than the longest */
export function resolveHold(
  options: AcquireOptions,
  defaults: ResolvedAcquire,
  maxTtlMs: number,
): Pick<ResolvedAcquire, "maxHoldMs" | "minHoldMs"> {
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
