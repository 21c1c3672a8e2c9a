import { existsSync, readFileSync } from "node:fs";

import type { Ended } from "./child.ts";
import type { Copy } from "./copy.ts";
import type { Killer, SimKiller, TestKiller } from "./mutant.ts";

/** What came of a run in a copy. */
export type Attempt = Failed | Passed;

interface Failed {
  readonly outcome: "failed";
  /** The test, or the schedule, and what it saw. */
  readonly by: string;
  readonly seconds: number;
}

interface Passed {
  readonly outcome: "passed";
  readonly seconds: number;
}

const simulation = "verify/dist/sim/main.js";
/** How long a run may take: of some tests or schedules, and of a whole level. */
const timeoutsMs = {
  some: { sim: 180_000, rules: 120_000, server: 180_000 },
  whole: { sim: 900_000, rules: 900_000, server: 1_800_000 },
} as const;
type Extent = keyof typeof timeoutsMs;

/**
 * Runs all of some killers of one level in a copy, to the first failure.
 * @throws {Error} where they could not be run: that kills nobody
 */
export function attempt(
  copy: Copy,
  killers: readonly [Killer, ...Killer[]],
  extent: Extent,
): Promise<Attempt> {
  const [first] = killers;
  const timeoutMs = timeoutsMs[extent][first.level];
  if (first.level === "sim") {
    return simulate(copy, first, timeoutMs);
  }
  const tests = killers.filter((killer) => killer.level !== "sim");
  return runTests(copy, tests, timeoutMs);
}

async function simulate(copy: Copy, { seed, runs }: SimKiller, timeoutMs: number): Promise<Attempt> {
  const args = [
    simulation,
    "--seed",
    String(seed),
    "--runs",
    String(runs),
    "--stop-at-first",
    "--workers",
    "1",
  ];
  const ended = await copy.run(args, timeoutMs);
  const { code, output, seconds } = ended;
  if (code === 0) {
    return { outcome: "passed", seconds };
  }
  const told = /^FAILED seed (\d+): (.*)$/m.exec(output);
  if (code === 1 && told) {
    return {
      outcome: "failed",
      by: `run ${Number(told[1]) - seed + 1}, seed ${told[1]}: ${told[2]}`,
      seconds,
    };
  }
  throw noResult(ended, timeoutMs);
}

async function runTests(copy: Copy, killers: readonly TestKiller[], timeoutMs: number): Promise<Attempt> {
  const file = copy.freshFile();
  const args = ["node_modules/vitest/vitest.mjs", "run", ...new Set(killers.map((killer) => killer.file))];
  args.push("--bail", "1", "--maxWorkers", "1", "--reporter", "json", "--outputFile", file);
  if (killers.every(({ test }) => test !== undefined)) {
    args.push("-t", killers.map(({ test = "" }) => patternOf(test)).join("|"));
  }
  const ended = await copy.run(args, timeoutMs);
  if (ended.code === undefined || !existsSync(file)) {
    throw noResult(ended, timeoutMs);
  }
  return judge(JSON.parse(readFileSync(file, "utf8")) as Results, ended);
}

/** What Vitest says, as far as we read it. */
interface Results {
  readonly numPassedTests: number;
  readonly numTotalTests: number;
  readonly testResults: readonly {
    readonly status: string;
    readonly message: string;
    readonly name: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

function judge({ numPassedTests, testResults }: Results, { code, output, seconds }: Ended): Attempt {
  if (code === 0) {
    if (numPassedTests === 0) {
      throw new Error(`No test was run: ${output.slice(-1_000)}`);
    }
    return { outcome: "passed", seconds };
  }
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  const failed = tests.find(({ status }) => status === "failed");
  if (failed) {
    return { outcome: "failed", by: failed.fullName.trim(), seconds };
  }
  const file = testResults.find(({ status }) => status === "failed");
  if (file && file.assertionResults.length > 0) {
    return {
      outcome: "failed",
      by: `a hook of ${file.name.split("/").at(-1)} ${lineOf(file.message)}`,
      seconds,
    };
  }
  if (!file && /Unhandled (Rejection|Error)/.test(output)) {
    return { outcome: "failed", by: "an error outside of every test", seconds };
  }
  throw new Error(`No test could be run: ${file?.message ?? output.slice(-1_000)}`);
}

/** A run that has no result of its own: it took too long, perhaps for others on this machine, or broke down. */
function noResult({ code, output }: Ended, timeoutMs: number): Error {
  const what =
    code === undefined ? `It has no end within ${timeoutMs / 1_000} s` : `It ended with code ${code}`;
  return new Error(`${what}: ${output.slice(-1_000)}`);
}

/** Text as a regular expression that finds it. */
function patternOf(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}

function lineOf(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}
