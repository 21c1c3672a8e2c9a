import type { ServerFacts, Deployment } from "../facts.ts";
import type { Finding, Level } from "../finding.ts";

/** The result of a check: its findings, or nothing. */
export type CheckResult = Omit<Finding, "node"> | false | undefined;

/** Checks the facts of one server. */
export type Check = (facts: ServerFacts, use: Deployment) => CheckResult | readonly CheckResult[];

/** Creates a finding, with its parts in reading order. */
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

/** The findings of several checks on one server. */
export function runChecks(checks: readonly Check[], facts: ServerFacts, use: Deployment): Finding[] {
  return checks
    .flatMap((check) => check(facts, use))
    .filter((one): one is Exclude<CheckResult, false | undefined> => one !== undefined && one !== false)
    .map((one) => ({ ...lasting(one, facts), node: facts.node }));
}

/** A setting that is changed while the server runs is lost at its restart, unless the server writes it into its configuration file. */
function lasting<F extends Omit<Finding, "node">>(one: F, { info }: ServerFacts): F {
  if (one.command?.startsWith("CONFIG SET") !== true) {
    return one;
  }
  return info.get("config_file")
    ? { ...one, command: `${one.command}; CONFIG REWRITE` }
    : { ...one, fix: `${one.fix}. The server has no configuration file, so change what starts it, too` };
}
