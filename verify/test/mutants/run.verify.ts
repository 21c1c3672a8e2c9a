import { expect, test } from "vitest";

import { at, condition, resolve, returned, type Aim } from "../../mutants/aim.ts";
import { byKept, byRules, type Mutant } from "../../mutants/mutant.ts";
import { randomReportOf, summaryOf } from "../../mutants/report.ts";
import { repositoryRoot } from "../../mutants/root.ts";
import { run } from "../../mutants/run.ts";
import { Sources } from "../../mutants/sources.ts";
import { by } from "../../mutants/syntax/operators.ts";

const options = {
  root: repositoryRoot(),
  workers: 1,
  checksUnmutated: false,
  onVerdict: (): undefined => undefined,
};

function mutant(replacement: string, more: Partial<Mutant> = {}): Mutant {
  return {
    name: "a-mutant",
    breaks: "a rule (1)",
    changes: [at("driftAllowanceMs", returned(), by(replacement))],
    killers: [byRules("validity", "clocks may disagree")],
    ...more,
  };
}

test("survivors, mutants that do not compile, and mutants without a run differ from killed mutants", async () => {
  const mutants: Mutant[] = [
    mutant("ttlMs + driftFactor"),
    mutant("$ + 0"),
    mutant("ttlMs +"),
    mutant("0", { killers: [byRules("validity", "no test of this name")] }),
    mutant("0", { killers: [{ level: "server", file: "verify/test/mutants/copy.test.ts" }] }),
  ];
  const verdicts = await run(mutants, options);
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

test("a random mutant is killed by the kept schedules or has wrong types, and the report shows both and the rate", async () => {
  const sources = new Sources(options.root);
  const of = (name: string, breaks: string, aim: Aim): Mutant =>
    mutant("", { name, breaks, changes: [resolve(sources, aim)], killers: [byKept()] });
  const verdicts = await run(
    [
      of("killed", "wall", at("ReentrantHold.exit", condition(), by("false"))),
      of("no library", "type", at("driftAllowanceMs", returned(), by("!ttlMs"))),
      of("survives", "same", at("driftAllowanceMs", returned(), by("$ + 0"))),
    ],
    options,
  );
  expect(verdicts.map(({ cause }) => cause)).toEqual([undefined, "compile", undefined]);
  const report = randomReportOf(verdicts, 3);
  expect(report).toContain("SURVIVES survives: same");
  expect(report).toContain("3 mutants of seed 3: 1 do not compile, 0 not judged");
  expect(report).toContain(
    "1 of 2 killed (1 by kept, 0 by sim, 0 by rules, 0 by server, 0 by a timeout): 50.0 %",
  );
});
