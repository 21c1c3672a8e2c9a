import type { HolderInfo } from "./driver.ts";
import { invalidKey } from "./errors.ts";
import { nodeModule } from "./runtime/node-modules.ts";
import { follow, isLikeSignal } from "./runtime/foreign-signals.ts";
import { utf8Bytes } from "./runtime/text.ts";

export const minTtlMs = 100;

const maxKeyBytes = 512;

/**
 * A key: 1 to 512 bytes of UTF-8. A lone surrogate is refused, because two such keys would have the same bytes.
 * @throws {LockError} `invalid-key`
 */
export function checkKey(key: string): string {
  if (!isText(key, maxKeyBytes)) {
    const size = typeof key === "string" ? `has ${utf8Bytes(key).length} bytes` : "is no string";
    const rule = `a key is a string of 1 to ${maxKeyBytes} bytes of well-formed UTF-8`;
    throw invalidKey(`The key ${formatValue(key)} ${size}; ${rule}`);
  }
  return key;
}

export function checkTtl(name: string, value: unknown, maxTtlMs: number): number {
  return checkInteger(name, value, minTtlMs, maxTtlMs);
}

/** An integer option with a default. */
export function integerOr(
  fallback: number,
  name: string,
  value: unknown,
  [min, max]: readonly [number, number],
): number {
  return value === undefined ? fallback : checkInteger(name, value, min, max);
}

export function checkInteger(name: string, value: unknown, min: number, max: number): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < min || value > max) {
    throw invalidValue(name, `an integer from ${min} to ${max}`, value);
  }
  return value;
}

/** A text of 1 to `max` bytes of UTF-8. */
export function checkText(name: string, value: unknown, max: number): string {
  if (!isText(value, max)) {
    throw invalidValue(name, `a string of 1 to ${max} bytes of well-formed UTF-8`, value);
  }
  return value;
}

/** A text about a holder or a break: 1 to `max` bytes of UTF-8 without NUL characters, which PostgreSQL cannot store. */
export function checkNote(name: string, value: unknown, max: number): string {
  const text = checkText(name, value, max);
  if (text.includes("\0")) {
    throw invalidValue(name, "a string without NUL characters", text);
  }
  return text;
}

function isText(value: unknown, max: number): value is string {
  return (
    typeof value === "string" &&
    value !== "" &&
    !(value.length * 3 > max && utf8Bytes(value).length > max) &&
    !/\p{Surrogate}/u.test(value)
  );
}

export function checkBoolean(name: string, value: unknown): boolean {
  if (typeof value !== "boolean") {
    throw invalidValue(name, "true or false", value);
  }
  return value;
}

export function checkFencingToken(value: unknown): bigint {
  if (typeof value !== "bigint" || value < 0n) {
    throw invalidValue("fencingToken", "a bigint, not negative", value);
  }
  return value;
}

/** Refuses unknown names, so that a misspelt `ttlMs` never silently means the default. */
export function checkOptionNames(options: object, known: readonly string[]): void {
  checkObject("options", options);
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) {
      throw new TypeError(`Unknown option \`${name}\`; expected one of ${known.join(", ")}`);
    }
  }
}

export function checkObject(name: string, value: unknown): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalidValue(name, "an object", value);
  }
}

/** The error for an invalid value: a `TypeError` for a wrong type, a `RangeError` for a wrong value. */
export function invalidValue(name: string, expected: string, value: unknown): TypeError | RangeError {
  const message = `Expected \`${name}\` to be ${expected}, got ${formatValue(value)} (${value === null ? "null" : typeof value})`;
  return typeof value === expectedType(expected) ? new RangeError(message) : new TypeError(message);
}

/** The error for a cursor that no page of the engine has returned. */
export function invalidCursor(cursor: string): TypeError | RangeError {
  return invalidValue("cursor", "a string that an earlier page returned", cursor);
}

export function checkDuration(name: string, value: unknown, min: number): number {
  if (value === Infinity) {
    return Infinity;
  }
  if (typeof value !== "number" || !Number.isInteger(value) || value < min) {
    throw invalidValue(name, `a whole number of ms from ${min}, or Infinity`, value);
  }
  return value;
}

/** A signal of this realm. A signal of another realm or of a polyfill is followed. */
export function checkSignal(name: string, value: unknown): AbortSignal {
  if (value instanceof AbortSignal) {
    return value;
  }
  if (!isLikeSignal(value)) {
    throw invalidValue(name, "an AbortSignal", value);
  }
  return follow(value);
}

export function checkIfLost(value: unknown): "abort" | "continue" {
  if (value !== "abort" && value !== "continue") {
    throw invalidValue("ifLost", '"abort" or "continue"', value);
  }
  return value;
}

/** Validates the metadata of a holder. */
export function checkHolderInfo({ owner, reason, labels }: HolderInfo): HolderInfo {
  return {
    owner: owner === undefined ? undefined : checkNote("owner", owner, 512),
    reason: reason === undefined ? undefined : checkNote("reason", reason, 1024),
    labels: labels === undefined ? undefined : checkLabels(labels),
  };
}

function checkLabels(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  checkObject("labels", labels);
  const entries = Object.entries(labels);
  if (entries.length > 32) {
    throw new RangeError(`Expected \`labels\` to have at most 32 entries, got ${entries.length}`);
  }
  return Object.fromEntries(
    entries.map(([name, value]) => [
      checkNote("label name", name, 64),
      checkNote(`labels.${name}`, value, 256),
    ]),
  );
}

function expectedType(expected: string): string | undefined {
  if (/^an? (integer|whole number)/.test(expected)) {
    return "number";
  }
  if (/^(a string|a decimal|not to begin|"abort")/.test(expected)) {
    return "string";
  }
  return expected.startsWith("a bigint") ? "bigint" : undefined;
}

function formatValue(value: unknown): string {
  if (typeof value === "string") {
    return value.length > 80 ? `${JSON.stringify(value.slice(0, 80))}…` : JSON.stringify(value);
  }
  const text = typeof value === "bigint" ? undefined : nodeModule("node:util")?.inspect(value, { depth: 0 });
  return (text ?? String(value)).slice(0, 80);
}
