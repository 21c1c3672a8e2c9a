import { expect, test } from "vitest";

import { mutatedFiles } from "../../mutants/edits.ts";
import { sitesOfLua } from "../../mutants/random/lua.ts";
import { randomMutants } from "../../mutants/random/sample.ts";
import type { Site } from "../../mutants/random/site.ts";
import { sitesOfTypeScript } from "../../mutants/random/typescript.ts";
import { repositoryRoot } from "../../mutants/root.ts";

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
