import type { Facts, Use } from "../facts.ts";
import type { Finding, Level } from "../finding.ts";

/** What a check answers: nothing, or what it found. */
export type Found = Omit<Finding, "node"> | false | undefined;

/** Looks at what one server says. */
export type Check = (facts: Facts, use: Use) => Found | readonly Found[];

/** A finding, in the order in which it is read. */
export function found(
  level: Level,
  id: string,
  told: {
    readonly observed: string;
    readonly danger: string;
    readonly advice: string;
    readonly command?: string;
  },
): Found {
  return { level, id, ...told };
}

/** All that some checks find on one server. */
export function examine(checks: readonly Check[], facts: Facts, use: Use): Finding[] {
  return checks
    .flatMap((check) => check(facts, use))
    .filter((one): one is Exclude<Found, false | undefined> => one !== undefined && one !== false)
    .map((one) => ({ ...one, node: facts.node }));
}
