import { expect, test } from "vitest";

import { mutatedFiles } from "../../mutants/edits.ts";
import { byKept, edit } from "../../mutants/mutant.ts";
import { sitesOfLua } from "../../mutants/random/lua.ts";
import { randomReportOf } from "../../mutants/random/report.ts";
import { randomMutants } from "../../mutants/random/sample.ts";
import type { Site } from "../../mutants/random/site.ts";
import { sitesOfTypeScript } from "../../mutants/random/typescript.ts";
import { repositoryRoot } from "../../mutants/root.ts";
import { run } from "../../mutants/run.ts";
import type { Verdict } from "../../mutants/trial.ts";

function changed(text: string, sites: readonly Site[]): string[] {
  return sites
    .map(({ start, end, replacement }) => text.slice(0, start) + replacement + text.slice(end))
    .sort();
}

test("mutants of a module change operators, constants, conditions and statements, but no types", () => {
  const text = "function f(n: 1 | 2): void { if (!g && n < 5) { h(Math.min(n)); } }";
  const around = (condition: string, call = "h(Math.min(n));"): string =>
    `function f(n: 1 | 2): void { if (${condition}) { ${call} } }`;
  expect(changed(text, sitesOfTypeScript("f.ts", text))).toEqual(
    [
      around("!(!g && n < 5)"),
      around("(g) && n < 5"),
      around("!g || n < 5"),
      around("!g && n <= 5"),
      around("!g && n < 0"),
      around("!g && n < (5 * 2)"),
      around("!g && n < 5", ";"),
      around("!g && n < 5", "h(Math.max(n));"),
    ].sort(),
  );
});

test("mutants of a script change operators, constants and statements, but no comments or strings", () => {
  const text = ["-- not 1 < 2", "if not a and b < -7 then", "  redis.call('DEL 1', K)", "end"].join("\n");
  const lines = (condition: string, call = "  redis.call('DEL 1', K)"): string =>
    ["-- not 1 < 2", condition, call, "end"].join("\n");
  expect(changed(text, sitesOfLua(text))).toEqual(
    [
      lines("if  a and b < -7 then"),
      lines("if not a or b < -7 then"),
      lines("if not a and b <= -7 then"),
      lines("if not a and b < -0 then"),
      lines("if not a and b < -(7 * 2) then"),
      lines("if not a and b < -7 then", ""),
    ].sort(),
  );
});

test("a seed determines the mutants, each fits the source, and a third change scripts", () => {
  const root = repositoryRoot();
  const mutants = randomMutants(root, 300, 7);
  expect(randomMutants(root, 300, 7)).toEqual(mutants);
  expect(randomMutants(root, 300, 8)).not.toEqual(mutants);
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(300);
  for (const mutant of mutants) {
    expect(mutatedFiles(root, mutant).size).toBe(1);
  }
  const scripts = mutants.filter(({ name }) => name.includes(".lua"));
  expect(scripts.length).toBeGreaterThan(60);
  expect(scripts.length).toBeLessThan(140);
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
}, 120_000);
