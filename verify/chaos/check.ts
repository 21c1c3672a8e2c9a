import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { judge } from "./judge/judge.ts";
import { readHistory } from "./judge/read-history.ts";
import { operationsOf, type Operation } from "./operations.ts";

// Judges the history of a run, of one engine or of all: `node verify/dist/chaos/check.js <folder>`. With `--porcupine` the judge is a
// checker of linearizability in Go that others wrote, and operations.ndjson in the folder of each engine is its input.

const [folder, flag] = process.argv.slice(2);

if (folder === undefined || folder === "--help" || (flag !== undefined && flag !== "--porcupine")) {
  process.stderr.write("Usage: node verify/dist/chaos/check.js <folder of a run> [--porcupine]\n");
  process.exitCode = folder === undefined ? 2 : 0;
} else {
  await check(folder);
}

async function check(folder: string): Promise<void> {
  const folders = [folder, ...subfolders(folder)].filter((each) => existsSync(join(each, "plan.json")));
  if (folders.length === 0) {
    process.stderr.write(`Expected the folder of a run, with a plan.json in it or below, got "${folder}"\n`);
    process.exitCode = 2;
    return;
  }
  for (const each of folders) {
    if (flag !== undefined) {
      checkByPorcupine(each, operationsOf(await readHistory(each)));
      continue;
    }
    const { violations, summary } = await judge(each);
    process.stdout.write(`${summary}\n`);
    if (violations.length > 0) {
      process.exitCode = 1;
    }
  }
}

function subfolders(given: string): string[] {
  if (!existsSync(given)) {
    return [];
  }
  return readdirSync(given, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(given, name));
}

function checkByPorcupine(folder: string, operations: readonly Operation[]): void {
  const file = resolve(folder, "operations.ndjson");
  writeFileSync(file, operations.map((operation) => `${JSON.stringify(operation)}\n`).join(""));
  const source = fileURLToPath(new URL("../../chaos/porcupine", import.meta.url));
  const { status, error } = spawnSync("go", ["-C", source, "run", ".", file], { stdio: "inherit" });
  if (status !== 0) {
    process.stderr.write(`${folder}: ${error?.message ?? "not linearizable"}\n`);
    process.exitCode = 1;
  }
}
