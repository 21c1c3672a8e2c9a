import type { OnceOptions } from "../kinds/once.ts";
import type { Locks } from "../locks.ts";
import { checkObject, checkTtl, invalidValue } from "../option-checks.ts";

const dayMs = 86_400_000;

/**
 * Validates the key and the options of a later `once`. A mistake is then an error of the schedule, and not of its first fire.
 * @throws {TypeError | RangeError}
 */
export function checkOnceOptions<O extends OnceOptions>(
  locks: Locks,
  key: string,
  options: O,
  ownNames: readonly string[],
): O {
  checkObject("options", options);
  const { keepMs, ifCrashed, ...rest } = options;
  checkTtl("keepMs", keepMs, dayMs);
  if (ifCrashed !== undefined && ifCrashed !== "free" && ifCrashed !== "keep") {
    throw invalidValue("ifCrashed", '"free" or "keep"', ifCrashed);
  }
  if ("minHoldMs" in rest) {
    throw new TypeError("Expected no `minHoldMs`, because `keepMs` is the time that the key stays held");
  }
  const others = Object.entries(rest).filter(([name]) => !ownNames.includes(name));
  locks.mutex(key, Object.fromEntries(others));
  return options;
}

/** @throws {TypeError} */
export function checkFunction(name: string, value: unknown): void {
  if (typeof value !== "function") {
    throw invalidValue(name, "a function", value);
  }
}
