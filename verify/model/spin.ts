import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

interface SpinCheck {
  readonly name: string;
  readonly defines: readonly string[];
  /** "safety": exclusion, and no waiter remains at an end. "progress": no waiter polls forever. */
  readonly property: "safety" | "progress";
  readonly isMutant: boolean;
}

function spinCheck(
  name: string,
  property: SpinCheck["property"],
  defines: readonly string[],
  isMutant = false,
): SpinCheck {
  return { name, property, defines, isMutant };
}

const minorityUnavailable = ["-DNODES=2", "-DLOSSES=2"];

const checks: readonly SpinCheck[] = [
  spinCheck("3 nodes, 2 clients, 1 loss, 1 double", "safety", []),
  spinCheck("3 nodes, 2 clients, 1 loss", "progress", ["-DDOUBLES=0"]),
  spinCheck("1 node unresponsive, 2 losses, 1 double", "safety", minorityUnavailable),
  spinCheck("1 node unresponsive, 2 losses, 1 double", "progress", minorityUnavailable),
  spinCheck("mutant: inquiries are ignored", "progress", [...minorityUnavailable, "-DNO_YIELD"], true),
  spinCheck("mutant: a yielded vote counts", "safety", ["-DLATE_VOTES"], true),
];

const source = fileURLToPath(new URL("../../model/spin/queue.pml", import.meta.url));

/** Checks the Promela model of the core with Spin. Returns the exit code, which is 1 for an unexpected result or without Spin. */
export function runSpin(): number {
  if (spawnSync("spin", ["-V"]).error || spawnSync("cc", ["--version"]).error) {
    console.error("Expected `spin` and `cc` to be installed, for --spin: on Debian, apt install spin gcc");
    return 1;
  }
  const folder = mkdtempSync(join(tmpdir(), "holdfast-spin-"));
  try {
    const failures = checks.filter((one) => !isAsExpected(one, folder));
    console.log(`\nSpin agrees in ${checks.length - failures.length} of ${checks.length} checks.`);
    return failures.length > 0 ? 1 : 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function isAsExpected({ name, defines, property, isMutant }: SpinCheck, folder: string): boolean {
  const begun = performance.now();
  run("spin", ["-a", ...defines, source], folder);
  run("cc", ["-O2", "-w", property === "safety" ? "-DSAFETY" : "-DNP", "-o", "pan", "pan.c"], folder);
  const output = run(join(folder, "pan"), ["-m1000000", ...(property === "progress" ? ["-l"] : [])], folder);
  const verdict = verdictOf(output);
  const isRight = verdict === (isMutant ? "an error" : "no error");
  const states = /(\S+) states, stored/.exec(output)?.[1] ?? "?";
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  const judged = isRight ? "as expected" : "UNEXPECTED ";
  console.log(`${judged} ${name}, ${property}: ${verdict}, ${states} states, ${seconds} s`);
  return isRight;
}

function verdictOf(output: string): string {
  const errors = Number(/errors: (\d+)/.exec(output)?.[1] ?? Number.NaN);
  if (errors > 0) {
    return "an error";
  }
  const isCutOff = /max search depth too small|out of memory|search not completed/i.test(output);
  return errors === 0 && !isCutOff ? "no error" : "not completed";
}

function run(command: string, args: readonly string[], folder: string): string {
  const { status, stdout, stderr, error } = spawnSync(command, [...args], {
    cwd: folder,
    encoding: "utf8",
    maxBuffer: 1 << 26,
  });
  if (error || status !== 0) {
    throw new Error(`${command} failed: ${error?.message ?? stderr}${stdout.slice(-2000)}`);
  }
  return stdout;
}
