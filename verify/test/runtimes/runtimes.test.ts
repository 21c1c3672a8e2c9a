import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { describe, expect, test } from "vitest";

import { document } from "../../runtimes/document.ts";
import { parseOptions } from "../../runtimes/options.ts";
import { failed, passed, type Outcome } from "../../runtimes/outcome.ts";
import { outcomeOf, type ProgramResult } from "../../runtimes/programs.ts";
import { allPassed, toText, type Results } from "../../runtimes/report.ts";
import { clients, servers, type ClientName } from "../../runtimes/roster.ts";
import { outcomeOfTests } from "../../runtimes/suites.ts";

const page = fileURLToPath(new URL("../../../docs/compatibility.md", import.meta.url));
const empty: Results = {
  date: "2026-01-01",
  clientVersions: { ioredis6: "6.1.2" },
  serverVersions: { redis7: "Redis 7.0.9" },
  programs: [],
  types: [],
  suites: [],
  notRun: [],
};

describe("options", () => {
  test("rejects an unknown name, and a page of an incomplete run", () => {
    expect(() => parseOptions(["--runtime", "node18"])).toThrow(
      'Expected --runtime to be some of node20, node22, node24, node26, bun, deno, separated by commas, got "node18"',
    );
    expect(() => parseOptions(["--write", "--client", "redis4"])).toThrow("--write needs a complete run");
    expect(parseOptions(["--client", "redis4,ioredis6"]).clients.map(({ name }) => name)).toEqual([
      "ioredis6",
      "redis4",
    ]);
  });
});

describe("a cell", () => {
  const report = { version: "20.1.2", hasAwaitUsing: false, isOneCopy: null, failures: [] };
  const run = { code: 0, stdout: "", stderr: "" };

  test("passes if the program had no failure and ended", () => {
    expect(outcomeOf(run, report)).toEqual(passed);
  });

  test("fails by a failed check, a process that does not end, an exit code, or a crash", () => {
    expect(outcomeOf(run, { ...report, failures: ["acquires: no"] })).toEqual(failed("acquires: no"));
    expect(outcomeOf({ ...run, code: null }, report)).toEqual(
      failed("the process did not end after the program"),
    );
    expect(outcomeOf({ ...run, code: 3 }, report)).toEqual(failed("exit code 3"));
    expect(outcomeOf({ ...run, code: 1, stderr: "Error: no" }, undefined)).toEqual(
      failed("no end of the program: Error: no"),
    );
  });
});

describe("the report", () => {
  const text = (results: Results): string => toText(results, { clients: clients.slice(0, 2), servers });

  test("names exact versions, and one failure makes the run fail", () => {
    const results: Results = {
      ...empty,
      programs: [cell("ioredis6", passed), cell("ioredis5", failed("acquires: no reply"))],
      notRun: ["Redis 8: no network"],
    };
    expect(text(results)).toContain("| Redis 7.0.9 | yes           | no        |");
    expect(text(results)).toContain("| server      | ioredis 6.1.2 | ioredis 5 |");
    expect(text(results)).toContain("- acquires: no reply (Node 20, ioredis5, redis7, esm)");
    expect(text(results)).toContain("- Redis 8: no network");
    expect(allPassed(results)).toBe(false);
  });

  test("counts no combination that does not exist, and needs at least one cell", () => {
    const types = [
      { compiler: "7.0.2", setting: "`nodenext`, CommonJS", outcome: { state: "absent" } as const },
    ];
    expect(text({ ...empty, types })).not.toContain("no ");
    expect(allPassed({ ...empty, types })).toBe(true);
    expect(allPassed(empty)).toBe(false);
  });

  test("has the tests of replicas and Sentinel, and names a server that fails them", () => {
    const killed = { code: null, stdout: "", stderr: "" };
    const results: Results = {
      ...empty,
      suites: [
        { server: "redis7", outcome: outcomeOfTests({ ...killed, code: 0 }) },
        {
          server: "redis8",
          outcome: outcomeOfTests({ ...killed, code: 1, stdout: "…\n3 passed, 2 failed\n" }),
        },
        { server: "valkey8", outcome: outcomeOfTests(killed) },
      ],
    };
    expect(text(results)).toContain("| Redis 7.0.9 | yes ");
    expect(text(results)).toContain("| Redis 8     | no ");
    expect(text(results)).toContain("- 3 passed, 2 failed (tests of replicas and Sentinel, redis8)");
    expect(text(results)).toContain("- the tests did not end (tests of replicas and Sentinel, valkey8)");
    expect(allPassed(results)).toBe(false);
  });

  test("docs/compatibility.md is a page of the command", () => {
    const written = readFileSync(page, "utf8");
    const [introduction, notes] = document(empty, { clients, servers }).split("2026-01-01", 2);
    expect(written.startsWith(introduction as string)).toBe(true);
    expect(written.endsWith((notes as string).slice((notes as string).indexOf("## Notes")))).toBe(true);
    expect(written).not.toContain("## Failed");
  });
});

function cell(client: ClientName, outcome: Outcome): ProgramResult {
  return { runtime: "Node 20", client, server: "redis7", format: "esm", outcome, report: undefined };
}
