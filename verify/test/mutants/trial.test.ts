import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { describe, expect, onTestFinished, test } from "vitest";

import { catalogue } from "../../mutants/catalogue.ts";
import { WorkingCopy } from "../../mutants/copy.ts";
import { mutatedFiles } from "../../mutants/edits.ts";
import { edit, byRules, type Edit, type Mutant } from "../../mutants/mutant.ts";
import { parseOptions } from "../../mutants/options.ts";
import { levelMatrix, verdictTable } from "../../mutants/report.ts";
import { repositoryRoot } from "../../mutants/root.ts";
import type { Verdict } from "../../mutants/trial.ts";

const driftOfOnePercent = "return ttlMs * driftFactor + 2;";

function mutant(edits: readonly Edit[], test = "clocks may disagree"): Mutant {
  return { name: "a-mutant", brokenRule: "a rule (1)", edits, killers: [byRules("validity", test)] };
}

describe("an edit", () => {
  const root = repositoryRoot();

  test("that does not fit exactly one place names the mutant and the file", () => {
    const nowhere = mutant([edit("validity.ts", "no such line", "")]);
    expect(() => mutatedFiles(root, nowhere)).toThrow(
      "a-mutant is out of date: does not occur in validity.ts",
    );
    const often = mutant([edit("validity.ts", "until", "")]);
    expect(() => mutatedFiles(root, often)).toThrow(
      /a-mutant is out of date: occurs \d+ times in validity\.ts/,
    );
  });

  test("that changes nothing is refused", () => {
    const idle = mutant([edit("validity.ts", driftOfOnePercent, driftOfOnePercent)]);
    expect(() => mutatedFiles(root, idle)).toThrow("changes nothing");
  });

  test("applies after an earlier edit of the same file", () => {
    const twice = mutant([
      edit("validity.ts", driftOfOnePercent, "return 5;"),
      edit("validity.ts", "return 5;", "return 6;"),
    ]);
    const [text] = mutatedFiles(root, twice).values();
    expect(text).toContain("return 6;");
    expect(text).not.toContain(driftOfOnePercent);
  });
});

test("a program that removes every package folder of a copy does not affect the original's packages", async () => {
  const root = mkdtempSync(join(tmpdir(), "holdfast-original-"));
  onTestFinished(() => {
    rmSync(root, { recursive: true });
  });
  const packages = ["node_modules/a", "node_modules/@scope/b", "verify/node_modules/c"];
  for (const path of packages) {
    mkdirSync(join(root, path), { recursive: true });
    writeFileSync(join(root, path, "index.js"), "");
  }
  using copy = new WorkingCopy(root);
  const program = `
    const { readdirSync, rmSync } = require("node:fs");
    for (const folder of ["node_modules/@scope/", "node_modules/", "verify/node_modules/"]) {
      console.log(readdirSync(folder).join());
      for (const name of readdirSync(folder)) rmSync(folder + name, { recursive: true });
      rmSync(folder, { recursive: true });
    }`;
  const { output } = await copy.run(["-e", program], 30_000);
  expect(output).toBe("b\na\nc\n");
  expect(packages.filter((path) => !existsSync(join(root, path, "index.js")))).toEqual([]);
});

describe("the report", () => {
  const finding = { level: "rules", seconds: 1, wasExpected: true } as const;
  const killed: Verdict = { mutant: mutant([]), findings: [{ ...finding, killedBy: "a test" }] };
  const survivor: Verdict = {
    mutant: { ...mutant([]), hasCounterexample: true },
    findings: [{ ...finding, killedBy: undefined }],
  };

  test("names the level and the killer of a mutant, or reports a survivor", () => {
    const [, , first, second] = verdictTable([killed, survivor]).split("\n");
    expect(first).toMatch(/a-mutant +\| a rule \(1\) +\| rules +\| a test/);
    expect(second).toMatch(/a-mutant +\| ▲ a rule \(1\) +\| SURVIVES/);
  });

  test("has a column for each level", () => {
    expect(levelMatrix([killed]).split("\n")[2]).toMatch(/\| \? +\| a test +\| \? +\|/);
  });
});

describe("options", () => {
  test("choose mutants by parts of their names", () => {
    const { mutants } = parseOptions(["--only", "drift-0, memory-"], catalogue);
    expect(mutants.map(({ name }) => name)).toContain("drift-0");
    expect(mutants.every(({ name }) => name === "drift-0" || name.includes("memory-"))).toBe(true);
    expect(parseOptions([], catalogue).mutants).toBe(catalogue);
  });

  test("name an invalid value", () => {
    expect(() => parseOptions(["--only", "no-such"], catalogue)).toThrow(
      'Expected --only to be parts of names that --list prints, got "no-such"',
    );
    expect(() => parseOptions(["--workers", "0"], catalogue)).toThrow(
      'Expected --workers to be an integer from 1 to 64, got "0"',
    );
  });
});
