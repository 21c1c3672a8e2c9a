import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";

import { runPlan } from "./run/coordinator.ts";
import { engines } from "./plan/engines.ts";
import { judge } from "./judge/judge.ts";
import { exitOnSignals, invalidOption, optionsOrExit } from "../options.ts";
import { parseOptions, usage, type ResolvedOptions } from "./options.ts";
import type { EngineName } from "./plan/plan.ts";
import { planOf } from "./plan/planner.ts";

// npm run verify:chaos: injects faults into real servers and processes, and then has the history judged.

const runs = fileURLToPath(new URL("../../chaos/runs", import.meta.url));

async function main(): Promise<void> {
  const options = optionsOrExit("verify:chaos", usage, parseOptions);
  const named = new Date().toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "");
  const folder = resolve(options.folder ?? join(runs, named));
  const isFolderUsed = options.engines.find((name) => existsSync(join(folder, name)));
  if (isFolderUsed !== undefined) {
    writeLine(
      `verify:chaos: ${invalidOption("folder", `a folder without a run of ${isFolderUsed}`, folder).message}`,
    );
    process.exitCode = 2;
    return;
  }
  let violations = 0;
  for (const name of options.engines) {
    const own = join(folder, name);
    await run(name, options, own);
    const verdict = await judge(own);
    process.stdout.write(`${verdict.summary}\n`);
    violations += verdict.violations.length;
  }
  writeLine(`Recorded in ${folder}`);
  process.exitCode = violations === 0 ? 0 : 1;
}

async function run(name: EngineName, options: ResolvedOptions, folder: string): Promise<void> {
  const engine = engines[name];
  const { seed, without } = options;
  const plan = planOf(engine, {
    seed,
    without,
    minutes: options.minutes / options.engines.length,
    nodeCount: engine.nodeCounts.includes(options.nodeCount)
      ? options.nodeCount
      : (engine.nodeCounts[0] as number),
  });
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "plan.json"), `${JSON.stringify(plan, undefined, 2)}\n`);
  await runPlan(plan, join(folder, "history"), writeLine);
}

function writeLine(line: string): void {
  process.stderr.write(`${line}\n`);
}

exitOnSignals(); // the channels of clients close, too

main().catch((error: unknown) => {
  writeLine(`verify:chaos: ${inspect(error)}`);
  process.exit(1);
});
