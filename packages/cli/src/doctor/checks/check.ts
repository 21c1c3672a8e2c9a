import type { ServerFacts, Deployment } from "../facts.ts";
import type { Finding, Level } from "../finding.ts";

/** What a check answers: nothing, or what it found. */
export type CheckResult = Omit<Finding, "node"> | false | undefined;

/** Looks at what one server says. */
export type Check = (facts: ServerFacts, use: Deployment) => CheckResult | readonly CheckResult[];

/** A finding, in the order in which it is read. */
export function finding(
  level: Level,
  id: string,
  details: {
    readonly observed: string;
    readonly impact: string;
    readonly fix: string;
    readonly command?: string;
  },
): CheckResult {
  return { level, id, ...details };
}

/** All that some checks find on one server. */
export function runChecks(checks: readonly Check[], facts: ServerFacts, use: Deployment): Finding[] {
  return checks
    .flatMap((check) => check(facts, use))
    .filter((one): one is Exclude<CheckResult, false | undefined> => one !== undefined && one !== false)
    .map((one) => ({ ...one, node: facts.node }));
}
