import { expect, test } from "vitest";

import { mutatedFiles } from "../../mutants/mutant.ts";
import { randomMutants } from "../../mutants/random/sample.ts";
import { repositoryRoot } from "../../mutants/root.ts";
import { Sources } from "../../mutants/sources.ts";
import { parseLua } from "../../mutants/syntax/lua.ts";
import type { Change } from "../../mutants/syntax/node.ts";
import { changesOf } from "../../mutants/syntax/operators.ts";
import { parseTypeScript } from "../../mutants/syntax/typescript.ts";

function changed(text: string, changes: readonly Change[]): string[] {
  return changes
    .map(({ start, end, replacement }) => text.slice(0, start) + replacement + text.slice(end))
    .sort();
}

test("mutants of a module change operators, constants, conditions and statements, but no types", () => {
  const text = "function f(n: 1 | 2): void { if (!g && n < 5) { h(Math.min(n)); } }";
  const around = (condition: string, call = "h(Math.min(n));"): string =>
    `function f(n: 1 | 2): void { if (${condition}) { ${call} } }`;
  expect(changed(text, changesOf(parseTypeScript("f.ts", text), text, "!"))).toEqual(
    [
      around("!(!g && n < 5)"),
      around("(g) && n < 5"),
      around("!g || n < 5"),
      around("!g && n <= 5"),
      around("!g && n < 0"),
      around("!g && n < (5 * 2)"),
      around("!g && n < 5", ""),
      around("!g && n < 5", "h(Math.max(n));"),
    ].sort(),
  );
});

test("mutants of a script change operators, constants, conditions and statements, but no comments or strings", () => {
  const text = ["-- not 1 < 2", "if not a and b < -7 then", "  redis.call('DEL 1', K)", "end"].join("\n");
  const lines = (condition: string, call = "  redis.call('DEL 1', K)"): string =>
    ["-- not 1 < 2", condition, call, "end"].join("\n");
  expect(changed(text, changesOf(parseLua(text), text, "not "))).toEqual(
    [
      lines("if not (not a and b < -7) then"),
      lines("if (a) and b < -7 then"),
      lines("if not a or b < -7 then"),
      lines("if not a and b <= -7 then"),
      lines("if not a and b < -0 then"),
      lines("if not a and b < -(7 * 2) then"),
      lines("if not a and b < -7 then", "  "),
    ].sort(),
  );
});

test("a seed determines the mutants, each fits the source, and a third change scripts", () => {
  const sources = new Sources(repositoryRoot());
  const mutants = randomMutants(sources, 300, 7);
  expect(randomMutants(sources, 300, 7)).toEqual(mutants);
  expect(randomMutants(sources, 300, 8)).not.toEqual(mutants);
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(300);
  for (const mutant of mutants) {
    expect(mutatedFiles(sources, mutant).size).toBe(1);
  }
  const scripts = mutants.filter(({ name }) => name.includes(".lua"));
  expect(scripts.length).toBeGreaterThan(60);
  expect(scripts.length).toBeLessThan(140);
});
