import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { runInChildProcess } from "../../compare/process-cell.ts";
import { failureNames, failures, type FailureName } from "../../compare/failures.ts";
import type { CellResult } from "../../compare/grid.ts";
import { parseOptions } from "../../compare/options.ts";
import { failed, notOffered, passed, type Outcome } from "../../compare/outcome.ts";
import { allPassed, toText } from "../../compare/report.ts";
import { libraryNames, type LibraryName } from "../../compare/roster.ts";

const tests = fileURLToPath(new URL("../../../packages/holdfast/test/", import.meta.url));

describe("the list of failures", () => {
  test.each(failures)("names an existing test for $name", ({ tests: { file, test: title } }) => {
    expect(readFileSync(join(tests, file), "utf8")).toContain(title);
  });
});

describe("options", () => {
  test("default to all failures and all libraries", () => {
    expect(parseOptions([])).toEqual({
      help: false,
      json: false,
      failures: failureNames,
      libraries: libraryNames,
    });
  });

  test("keep the order of the list", () => {
    const { failures: names } = parseOptions(["--only", "tie, lost-reply"]);
    expect(names).toEqual(["lost-reply", "tie"]);
  });

  test("name an unknown value", () => {
    expect(() => parseOptions(["--only", "tie,nothing"])).toThrow(/--only .*"nothing"/);
  });
});

describe("the report", () => {
  test("is a table of verdicts, followed by the reason of each failure", () => {
    const names = { failures: ["tie", "tiny-ttl"], libraries: ["holdfast", "redlock"] } as const;
    const text = toText(
      [
        result("tiny-ttl", "redlock", passed("7 commands in 1 s")),
        result("tie", "redlock", failed("release did not end in 3.0 s")),
        result("tie", "holdfast", passed()),
        result("tiny-ttl", "holdfast", notOffered("no renewal")),
      ],
      names,
    );
    expect(text.split("\n").slice(0, 4)).toEqual([
      "| failure                             | holdfast    | redlock |",
      "| ----------------------------------- | ----------- | ------- |",
      "| a tie among an even number of nodes | passed      | FAILED  |",
      "| a tiny TTL                          | not offered | passed  |",
    ]);
    expect(text).toContain("  redlock, failed: release did not end in 3.0 s\n");
    expect(text).toContain("  redlock, passed: 7 commands in 1 s\n");
    expect(text).not.toContain("holdfast, passed");
  });

  test.each([
    [true, result("tie", "holdfast", passed())],
    [true, result("tie", "redlock", failed("it hangs"))],
    [true, result("semaphore-clocks", "holdfast", notOffered("no semaphore"))],
    [false, result("tie", "holdfast", failed("it hangs"))],
    [false, result("tie", "redlock", { verdict: "not run", how: "no server" })],
  ])("is satisfied: %s, with %o", (isGood, one) => {
    expect(allPassed([result("tiny-ttl", "holdfast", passed()), one])).toBe(isGood);
  });

  test("does not pass without results", () => {
    expect(allPassed([])).toBe(false);
  });
});

describe("a library in a process of its own", () => {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "holdfast-apart-"));
  });

  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  test.each([
    ["that blocks forever", "process.send('x'); while (true);", undefined],
    ["that hangs", "setInterval(() => {}, 1_000);", "hung: no end in 0.5 s"],
    [
      "that ends",
      "console.error('out of memory'); process.exit(3);",
      "crashed: its process ended (code 3) out of memory",
    ],
    ["that kills itself", "process.kill(process.pid, 'SIGABRT');", "crashed: its process ended (SIGABRT)"],
  ])("%s ends in its own process, and the outcome is reported", async (name, code, how) => {
    const path = join(folder, `${name.replaceAll(" ", "-")}.mjs`);
    await writeFile(path, code);
    const outcome = await runInChildProcess(path, [], name === "that hangs" ? 500 : 20_000);
    expect(outcome).toEqual(how === undefined ? "x" : failed(how));
  });
});

function result(failure: FailureName, library: LibraryName, outcome: Outcome): CellResult {
  return { failure, library, outcome };
}
