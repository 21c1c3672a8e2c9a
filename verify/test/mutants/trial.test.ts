import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { describe, expect, onTestFinished, test } from "vitest";

import { catalogue } from "../../mutants/catalogue.ts";
import { WorkingCopy } from "../../mutants/copy.ts";
import type { Mutant } from "../../mutants/mutant.ts";
import { parseOptions } from "../../mutants/options.ts";
import { verdictLine } from "../../mutants/report.ts";

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

test("the report names the level and the killer of a mutant, or a survivor", () => {
  const mutant = catalogue[0] as Mutant;
  const finding = { level: "rules", seconds: 1 } as const;
  expect(verdictLine({ mutant, findings: [{ ...finding, killedBy: "a test" }] })).toBe(
    `${mutant.name}: killed by rules in 1.0 s: a test`,
  );
  expect(verdictLine({ mutant, findings: [{ ...finding, killedBy: undefined }] })).toBe(
    `SURVIVES ${mutant.name}: ${mutant.breaks}`,
  );
});

describe("options", () => {
  test("choose mutants by parts of their names", () => {
    const { mutants } = parseOptions(["--only", "wall-clock, postgres-"], catalogue);
    expect(mutants.map(({ name }) => name)).toContain("wall-clock-is-ignored");
    expect(mutants.every(({ name }) => name.includes("wall-clock") || name.includes("postgres-"))).toBe(true);
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
