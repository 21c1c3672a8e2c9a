import { readdir, readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";

import { runSeeds, type SeedRunResult } from "./run/campaign.ts";
import { openWorkerPool } from "./run/workers.ts";
import { describeFinding, type Finding } from "./judge/findings.ts";
import { optionsOrExit } from "../options.ts";
import { parseOptions, usage, type ResolvedOptions } from "./options.ts";
import { planSchedule } from "./plan/planner.ts";
import { Progress } from "./report/progress.ts";
import { replay } from "./run/replay.ts";
import { describeShrunk } from "./report/report.ts";
import type { Schedule } from "./plan/schedule.ts";
import { shrink } from "./shrink/shrink.ts";
import { summaryOf, summaryText } from "./report/summary.ts";
import { runSchedule } from "./run/world.ts";

/** How many failing schedules are shrunk. Only the seed of any other failing schedule is printed. */
const maxShrunk = 3;

/** @returns whether all checks succeeded */
async function main(options: ResolvedOptions): Promise<boolean> {
  const { schedule, trace, seed } = options;
  if (schedule !== null) {
    return trace ? replay(await read(schedule), writeLine) : replayFiles(await filesOf(schedule));
  } else if (trace) {
    return replay(planSchedule(seed), writeLine);
  }
  return runSeedRange(options);
}

async function read(file: string): Promise<Schedule> {
  return JSON.parse(await readFile(file, "utf8")) as Schedule;
}

/** The path of a file itself, or the paths of all schedules in a folder. */
async function filesOf(path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) {
    return [path];
  }
  const names = await readdir(path);
  return names.filter((name) => name.endsWith(".json")).map((name) => join(path, name));
}

async function replayFiles(files: readonly string[]): Promise<boolean> {
  let failures = 0;
  for (const file of files) {
    const schedule = await read(file);
    const { engine, kind, scenario } = schedule;
    const { findings, grants } = await runSchedule(schedule);
    failures += findings.length > 0 ? 1 : 0;
    findings
      .map((finding) => `FAILED ${basename(file, ".json")}: ${describeFinding(finding)}`)
      .forEach(writeLine);
    writeLine(`${engine}, ${kind}, ${scenario}: ${grants} grants, ${findings.length} findings`);
  }
  return failures === 0;
}

async function runSeedRange(options: ResolvedOptions): Promise<boolean> {
  const { seed, runs, stopAtFirst, json } = options;
  await using pool = openWorkerPool(options.workers);
  const progress = new Progress(runs, logLine);
  const result = await runSeeds(pool, { ...options, stop: shrinkDeadline() }, (results) => {
    progress.update(results);
  });
  const summary = summaryOf(result.tally, result.failed, seed, progress.ms);
  if (stopAtFirst && result.failed[0]) {
    writeLine(failureLine(result.failed[0].seed, result.failed[0].findings));
  } else if (json) {
    writeLine(JSON.stringify({ ...summary, failed: result.failed }, null, 2));
  } else {
    await reportFailures(result, options.shrinkMs);
    writeLine(summaryText(summary));
  }
  return result.failed.length === 0;
}

/** The first signal stops the run, and the results so far are printed. A signal more than a second later exits at once. */
function shrinkDeadline(): AbortSignal {
  const controller = new AbortController();
  let firstSignalAt = Infinity;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      controller.abort();
      firstSignalAt = Math.min(firstSignalAt, performance.now());
      if (performance.now() - firstSignalAt > 1_000) {
        process.exit(130);
      }
    });
  }
  return controller.signal;
}

async function reportFailures({ failed }: SeedRunResult, shrinkMs: number): Promise<void> {
  for (const [index, { seed, findings }] of failed.entries()) {
    writeLine(failureLine(seed, findings));
    if (index < maxShrunk && shrinkMs > 0) {
      await reportShrunk(planSchedule(seed), shrinkMs);
    }
  }
}

async function reportShrunk(schedule: Schedule, forMs: number): Promise<void> {
  const end = performance.now() + forMs;
  let reportedAt = performance.now();
  const shrunk = await shrink(schedule, {
    run: async (smaller) => (await runSchedule(smaller)).findings,
    mayContinue: () => performance.now() < end,
    progress: ({ steps }, runs) => {
      if (performance.now() - reportedAt > 1_000) {
        reportedAt = performance.now();
        logLine(`shrinking seed ${schedule.seed}: ${steps.length} steps remaining after ${runs} runs`);
      }
    },
  });
  writeLine(
    shrunk
      ? describeShrunk(shrunk)
      : "  the second run of the seed does not fail, so the failure does not depend on the seed alone",
  );
}

function failureLine(seed: number, [first]: readonly Finding[]): string {
  return `FAILED seed ${seed}: ${describeFinding(first as Finding)}`;
}

function writeLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

function logLine(line: string): void {
  process.stderr.write(`${line}\n`);
}

process.exitCode = (await main(optionsOrExit("verify:sim", usage, parseOptions))) ? 0 : 1;
