import { existsSync, readFileSync } from "node:fs";

import type { Ended } from "./child.ts";
import type { WorkingCopy } from "./copy.ts";
import { bySim, type Killer, type KeptKiller, type SimKiller, type TestKiller } from "./mutant.ts";

/** The result of a run in a copy. */
export type KillResult = Failed | Passed;

interface Failed {
  readonly outcome: "failed";
  /** The failed test, or the failed schedule with its violation. */
  readonly killedBy: string;
  /** The first line of a test's failure. */
  readonly message: string;
  /** A run that fails again. */
  readonly reproduction: Killer;
  readonly seconds: number;
}

interface Passed {
  readonly outcome: "passed";
  readonly seconds: number;
}

/** A run was stopped at its timeout. */
export class RunTimedOut extends Error {}

const simulation = "verify/dist/sim/main.js";
const keptSchedules = "verify/test/sim/schedules";
/** The timeouts of a run: of some tests or schedules, of the files near a source, and of all killers of a level. */
const timeoutsMs = {
  some: { kept: 60_000, sim: 180_000, rules: 120_000, server: 180_000 },
  near: { kept: 60_000, sim: 120_000, rules: 300_000, server: 400_000 },
  whole: { kept: 60_000, sim: 900_000, rules: 900_000, server: 1_800_000 },
} as const;
type TestScope = keyof typeof timeoutsMs;

/**
 * Runs some killers of one level in a copy, until the first failure.
 * @throws {Error} if they could not run, which kills no mutant
 */
export function runKillers(
  copy: WorkingCopy,
  killers: readonly [Killer, ...Killer[]],
  scope: TestScope,
): Promise<KillResult> {
  const [first] = killers;
  const timeoutMs = timeoutsMs[scope][first.level];
  if (first.level === "sim" || first.level === "kept") {
    return runSimulation(copy, first, timeoutMs);
  }
  const tests = killers.filter((killer) => "file" in killer);
  return runTests(copy, tests, timeoutMs);
}

async function runSimulation(
  copy: WorkingCopy,
  killer: SimKiller | KeptKiller,
  timeoutMs: number,
): Promise<KillResult> {
  const args = killer.level === "kept" ? ["--schedule", keptSchedules] : argsOf(killer);
  const ended = await copy.run([simulation, ...args], timeoutMs);
  const { code, output, seconds } = ended;
  const failure = /^FAILED (?:seed )?(\S+): (.*)$/m.exec(output);
  if (code === 0) {
    return { outcome: "passed", seconds };
  } else if (code !== 1 || !failure) {
    throw timedOutOrBroken(ended, timeoutMs);
  }
  const [, name = "", message = ""] = failure;
  const reproduction = killer.level === "kept" ? killer : bySim(Number(name), 1);
  return { outcome: "failed", killedBy: `${name}: ${message}`, message, reproduction, seconds };
}

function argsOf({ seed, runs, only }: SimKiller): string[] {
  const schedules = [
    "--seed",
    String(seed),
    "--runs",
    String(runs),
    ...(only === undefined ? [] : ["--only", only]),
  ];
  return [...schedules, "--stop-at-first", "--workers", "1"];
}

async function runTests(
  copy: WorkingCopy,
  killers: readonly TestKiller[],
  timeoutMs: number,
): Promise<KillResult> {
  const file = copy.freshFile();
  const args = ["node_modules/vitest/vitest.mjs", "run", ...new Set(killers.map((killer) => killer.file))];
  // A test that hangs must fail before the run is stopped.
  args.push("--testTimeout", "30000", "--maxWorkers", "1", "--reporter", "json", "--outputFile", file);
  if (killers.every(({ test }) => test !== undefined)) {
    args.push("-t", killers.map(({ test = "" }) => patternOf(test)).join("|"));
  } else {
    args.push("--bail", "1"); // among few concurrent tests, the first failure would hide its own result
  }
  const ended = await copy.run(args, timeoutMs);
  if (ended.code === undefined || !existsSync(file)) {
    throw timedOutOrBroken(ended, timeoutMs);
  }
  const results = JSON.parse(readFileSync(file, "utf8")) as Results;
  if (ended.code !== 0) {
    return judgeTests(killers, results, ended);
  } else if (results.numPassedTests === 0) {
    throw new Error(`No test ran: ${ended.output.slice(-1_000)}`);
  }
  return { outcome: "passed", seconds: ended.seconds };
}

/** The part of Vitest's results that this file reads. */
interface Results {
  readonly numPassedTests: number;
  readonly testResults: readonly {
    readonly status: string;
    readonly message: string;
    readonly name: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

function judgeTests(
  killers: readonly TestKiller[],
  { testResults }: Results,
  { output, seconds }: Ended,
): KillResult {
  const file = testResults.find(({ status }) => status === "failed");
  if (!file || file.assertionResults.length === 0) {
    throw new Error(`No test could run: ${file?.message ?? output.slice(-1_000)}`);
  }
  const test = file.assertionResults.find(({ status }) => status === "failed");
  const [killedBy, text = ""] = test
    ? [test.fullName.trim(), test.failureMessages[0]]
    : [`a hook of ${file.name.split("/").at(-1)}`, file.message];
  const message = text.split("\n", 1)[0] as string;
  const { level } = killers[0] as TestKiller;
  const reproduction = killers.find(isNamedBy(killedBy)) ?? { level, file: file.name };
  return { outcome: "failed", killedBy, message, reproduction, seconds };
}

/** The title of a test with parameters may be shortened, so the whole file runs again, unless a killer names the test. */
function isNamedBy(title: string): (killer: TestKiller) => boolean {
  return ({ test }) => test !== undefined && title.includes(test);
}

/** The error of a run without a result: a timeout, perhaps because of a busy machine, or a crash. */
function timedOutOrBroken({ code, output }: Ended, timeoutMs: number): Error {
  const end = output.slice(-1_000);
  return code === undefined
    ? new RunTimedOut(`The run did not end within ${timeoutMs / 1_000} s: ${end}`)
    : new Error(`The run ended with code ${code}: ${end}`);
}

/** A regular expression that matches the text. */
function patternOf(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}
