import { checkFencingToken, invalidValue } from "../option-checks.ts";

/** The largest value of a BIGINT column. */
const maxToken = 2n ** 63n - 1n;

/** `written`: the resource accepted the write. `stale`: the resource refused the write, because it has seen a larger fencing token. */
export type FencedOutcome = "written" | "stale";

/** A fencing token in decimal digits. */
export function tokenText(fencingToken: bigint): string {
  if (checkFencingToken(fencingToken) > maxToken) {
    throw invalidValue("fencingToken", "a bigint, at most 2^63 − 1", fencingToken);
  }
  return String(fencingToken);
}
