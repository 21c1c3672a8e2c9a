import type { SuiteRecord } from "../src/report/record.ts";
import { summarize } from "../src/report/summary.ts";
import type { ContestantName } from "../src/run/contestant-list.ts";
import type { Sample, SuiteDescription } from "../src/suites/suite.ts";

/** The record of a run of one suite. */
export function recordOf(suite: SuiteDescription, samples: readonly Sample[]): SuiteRecord {
  const environment = {
    node: "v20.0.0",
    servers: ["Redis 7.0.0"],
    system: "",
    cpu: "",
    cpus: 1,
    placement: "",
    memoryGiB: 1,
    loadAverage: 0,
    versions: { redlock: "5", holdfast: "1" },
  };
  const run = { date: "1970-01-01T00:00:00.000Z", commit: "0123abcd", environment };
  return summarize(suite, { samples, notes: [] }, run);
}

/** A sample of the first round and the first case, unless `more` names others. */
export function sampleOf(
  suite: SuiteDescription,
  contestant: ContestantName,
  values: Sample["values"],
  more: Partial<Sample> = {},
): Sample {
  const nothingFailed = { failures: 0, firstFailure: null };
  const [label = ""] = suite.cases;
  return {
    suite: suite.name,
    contestant,
    round: 1,
    case: label,
    settings: "as it comes",
    values,
    ...nothingFailed,
    ...more,
  };
}
