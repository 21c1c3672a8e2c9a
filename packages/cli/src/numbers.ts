import { InvalidArgumentError } from "commander";

/** Reads a whole number within bounds. */
export function wholeNumber(least: number, most: number = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (number >= least && number <= most) {
      return number;
    }
    throw new InvalidArgumentError(
      `Expected a whole number from ${least}${most === Number.MAX_SAFE_INTEGER ? "" : ` to ${most}`}.`,
    );
  };
}

/** Reads a fencing token. */
export function fencingToken(text: string): bigint {
  if (!/^\d{1,39}$/.test(text)) {
    throw new InvalidArgumentError("Expected a fencing token: a decimal number, as inspect shows it.");
  }
  return BigInt(text);
}
