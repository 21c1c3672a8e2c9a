import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
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

const program = fileURLToPath(new URL("../../dist/compare/main.js", import.meta.url));
const tests = fileURLToPath(new URL("../../../packages/holdfast/test/", import.meta.url));

describe("the list of failures", () => {
  test.each(failures)("names an existing test for $name", ({ tests: { file, test: title } }) => {
    expect(readFileSync(join(tests, file), "utf8")).toContain(title);
  });
});

describe("npm run compare", () => {
  // Scenarios that take many seconds run only by `npm run compare`. The list names our own test for each of them.
  const slow: readonly FailureName[] = ["transient-error", "timed-out-acquire", "dead-shard"];
  const quick = failureNames.filter((name) => !slow.includes(name));

  test("holdfast passes every scenario that applies to it, and is quick", { timeout: 120_000 }, async () => {
    const { code, results } = await compare("holdfast", quick);
    const verdicts = Object.fromEntries(results.map(({ failure, outcome }) => [failure, outcome.verdict]));
    const expected = quick.map((name) => [name, "passed"]);
    expect(verdicts).toEqual(Object.fromEntries(expected));
    expect(code).toBe(0);
  });

  test.each([
    ["@sesamecare-oss/redlock", "database-and-prefix", /in database 0/],
    ["@verrou/core", "release-after-expiry", /own error was replaced/],
    ["redis-semaphore", "semaphore-clocks", /two holders of one permit/],
    ["redis-semaphore", "transient-error", /an unhandled rejection, which ends the process/],
  ] as const)("%s fails %s, so the list is able to fail", { timeout: 60_000 }, async (library, name, how) => {
    const { code, results } = await compare(library, [name]);
    expect(results).toMatchObject([{ library, failure: name, outcome: { verdict: "failed" } }]);
    expect(results[0]?.outcome.how).toMatch(how);
    expect(code).toBe(0); // failures of other libraries do not count
  });

  test("names an invalid option, the expected value and the actual value", async () => {
    const { code, stdout, stderr } = await run("--library", "nobody");
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(/^compare: Expected --library to be some of holdfast, .*, got "nobody"\n$/);
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

async function compare(
  library: LibraryName,
  names: readonly FailureName[],
): Promise<{ code: number | null; results: CellResult[] }> {
  const { code, stdout, stderr } = await run("--json", "--library", library, "--only", names.join(","));
  try {
    return { code, results: JSON.parse(stdout) as CellResult[] };
  } catch (error) {
    throw new Error(`no results; it said:\n${stderr}`, { cause: error });
  }
}

/** The built program, as users run it. */
async function run(
  ...args: readonly string[]
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  if (!existsSync(program)) {
    throw new Error("It is not built: run `npm run build`");
  }
  const child = spawn(process.execPath, [program, ...args]);
  const lastMessage = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream].setEncoding("utf8").on("data", (text: string) => {
      lastMessage[stream] += text;
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  return { code, ...lastMessage };
}
