import { expect, test } from "vitest";

import { byKept, byRules, byServer, edit, type Edit, type Mutant } from "../../mutants/mutant.ts";
import { randomReportOf } from "../../mutants/random/report.ts";
import { summaryOf } from "../../mutants/report.ts";
import { repositoryRoot } from "../../mutants/root.ts";
import { run } from "../../mutants/run.ts";
import type { Verdict } from "../../mutants/trial.ts";

const driftOfOnePercent = "return ttlMs * driftFactor + 2;";

function mutant(edits: readonly Edit[], test = "clocks may disagree"): Mutant {
  return { name: "a-mutant", brokenRule: "a rule (1)", edits, killers: [byRules("validity", test)] };
}

test("survivors, mutants that do not compile, and mutants without a run differ from killed mutants", async () => {
  const mutants: Mutant[] = [
    mutant([edit("validity.ts", driftOfOnePercent, "return ttlMs + driftFactor;")]),
    mutant([edit("validity.ts", driftOfOnePercent, "return ttlMs * driftFactor + 1 + 1;")]),
    mutant([edit("validity.ts", driftOfOnePercent, "return `${ttlMs * driftFactor}`;")]),
    mutant([edit("validity.ts", driftOfOnePercent, "return ttlMs + driftFactor;")], "no test of this name"),
    {
      ...mutant([edit("validity.ts", driftOfOnePercent, "return ttlMs + driftFactor;")]),
      killers: [byServer("verify/test/mutants/copy.test.ts")] as const,
    },
  ];
  const verdicts = await run(mutants, {
    root: repositoryRoot(),
    workers: 1,
    mode: "expected",
    checksUnmutated: false,
    print: () => undefined,
    onVerdict: () => undefined,
  });
  expect(verdicts).toMatchObject([
    { findings: [{ killedBy: "clocks may disagree by one percent of the TTL and 2 ms" }] },
    { findings: [{ killedBy: undefined }] },
    { findings: [], problem: expect.stringContaining("does not compile") as unknown },
    { findings: [], problem: expect.stringContaining("No test ran") as unknown },
    { problem: expect.stringContaining("A test also fails without the mutant") as unknown },
  ]);
  expect(summaryOf(verdicts)).toContain("5 mutants: 1 killed");
  expect(summaryOf(verdicts)).toContain("1 survive, 3 not judged");
});

test("a random mutant is killed by the kept schedules or does not compile, and the report shows both and the rate", async () => {
  const of = (name: string, file: string, search: string, replace: string): Verdict["mutant"] => ({
    name,
    brokenRule: `${search} → ${replace}`,
    edits: [edit(file, search, replace)],
    killers: [byKept()],
  });
  const mutants = [
    of(
      "killed",
      "validity.ts",
      "if (remainingValidityMs(confirmed, clock) > remainingValidityMs(validity, clock)) {",
      "if (remainingValidityMs(confirmed, clock) > 0 && confirmed.until > validity.until) {",
    ),
    of("no library", "validity.ts", "return ttlMs * driftFactor + 2;", "return !ttlMs;"),
    of("survives", "validity.ts", "return ttlMs * driftFactor + 2;", "return ttlMs * driftFactor + 1 + 1;"),
  ];
  const verdicts = await run(mutants, {
    root: repositoryRoot(),
    workers: 1,
    mode: "expected",
    checksUnmutated: false,
    print: () => undefined,
    onVerdict: () => undefined,
  });
  expect(verdicts.map(({ cause }) => cause)).toEqual([undefined, "compile", undefined]);
  const report = randomReportOf(verdicts, 3);
  expect(report).toContain("SURVIVES survives: return");
  expect(report).toContain("3 mutants of seed 3: 1 do not compile, 0 not judged");
  expect(report).toContain(
    "1 of 2 killed (1 by kept, 0 by sim, 0 by rules, 0 by server, 0 by a timeout): 50.0 %",
  );
});
