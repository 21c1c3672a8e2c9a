import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { describe, expect, test } from "vitest";

import type { FailureName } from "../../compare/failures.ts";
import type { CellResult } from "../../compare/grid.ts";
import type { LibraryName } from "../../compare/roster.ts";

const program = fileURLToPath(new URL("../../dist/compare/main.js", import.meta.url));

describe("npm run compare", () => {
  test.each([
    ["@sesamecare-oss/redlock", "database-and-prefix", /in database 0/],
    ["@verrou/core", "release-after-expiry", /own error was replaced/],
    ["redis-semaphore", "semaphore-clocks", /two holders of one permit/],
    ["redis-semaphore", "transient-error", /an unhandled rejection, which ends the process/],
  ] as const)("%s fails %s, so the list is able to fail", async (library, name, how) => {
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
